// SPDX-License-Identifier: Apache-2.0
// The cases of kernel_simple, dressed as a reference: a module that a reference guest loads like
// any other, whose inputs and outputs are those of the cases.
//
// Cases are a list; each is an object {name?, inputs, outputs?, rtol? (1e-4), atol? (1e-5)}.
// `input` and `output` are read too, and a value that is no object is the inputs of a case. A lone
// object is a list of one. `inputs` are the arguments of forward: a list in order, an object (of
// Python a dict) by name, anything else alone. Without `outputs`, or with null (None), the case is
// run and not compared.
//
// In JSON (task::TaskOptions::cases_json) values become Python's so:
//
//   [[1, 2], [3, 4.5]]                   numbers, true and false, nested in equally long lists:
//   what
//                                        torch.tensor makes of them (float32 if one has a point,
//                                        int64, bool); "nan", "inf" and "-inf" count as numbers
//   {"tensor": [1, 2], "dtype": "int8"}  a tensor of that dtype; without one as above. The only way
//                                        to write a tensor without dimensions, or several tensors
//                                        of one shape in a list
//   any other list, any other object     a list or a dict of values
//   number, text, true, false, null      the scalar
//
// In Python (cases_code, or the candidate's code) they are what get_cases() returns, as it is. If
// there is no get_cases(), get_inputs() gives the inputs of the one case. get_init_inputs() of
// cases_code, if there is one, gives the constructor's arguments; for the other two sources it is
// the candidate's own that does, in the candidate's process.
//
// The module knows a case by its position, which is the seed before get_inputs. forward() then
// returns the outputs of the case whose inputs were last made.
#pragma once

#include "drk/task/task.h"
#include "drk/value.h"

#include <boost/describe.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace drk::worker {

/// A case without its values.
struct SimpleCase {
  std::string name;  ///< At most 60 characters; "case_0" and so on where none was given.
  bool has_outputs = false;
  double rtol = 0;
  double atol = 0;
};
BOOST_DESCRIBE_STRUCT(SimpleCase, (), (name, has_outputs, rtol, atol))

/// Inputs made for this seed are the list of the cases, for read_simple_cases.
inline constexpr std::uint64_t kCasesSeed = std::uint64_t{1} << 62U;

/// The task whose reference the cases of `task` are. Pure.
[[nodiscard]] task::Task simple_reference_task(const task::Task& task);
/// What a reference guest works by, of any workflow: the task, or its cases'.
[[nodiscard]] task::Task reference_task_of(const task::Task& task);

/// Throws Error{corrupt} when the guest has sent something else, which a candidate whose own code
/// holds the cases can make it do.
[[nodiscard]] std::vector<SimpleCase> read_simple_cases(const value::View& inputs);

}  // namespace drk::worker
