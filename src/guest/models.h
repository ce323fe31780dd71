// SPDX-License-Identifier: Apache-2.0
// What the judged source defines: a model, and a problem's inputs.
#pragma once

#include "drk/guest.h"

#include "guest/core.h"

#include <cstdint>
#include <string>
#include <vector>

namespace drk::guest {

/// Those of one source. Each function needs the GIL and throws RequestFailed.
class Models {
 public:
  /// `core` must outlast it.
  explicit Models(const Core& core) : core_(core) {}

  /// Executes a problem's source and builds its model. The constructor's arguments.
  [[nodiscard]] Ref load_reference(const LoadReference& request, const std::string& source);
  /// The same for a candidate's. `make_arguments` gives the constructor's from the module, once
  /// that is loaded.
  template <class MakeArguments>
  void load_candidate(const LoadCandidate& request,
                      const std::string& source,
                      const MakeArguments& make_arguments) {
    const Ref module = run_module("candidate", source);
    const Ref model_class = find_class(module.get(), request.entry_point);
    const Ref arguments = request.own_init_inputs ? own_init_inputs(module.get(), request.init_seed)
                                                  : make_arguments();
    construct(model_class.get(), arguments.get(), request.init_seed);
  }
  /// Only whether it compiles.
  void check_syntax(const std::string& source) const { (void)compile(source); }

  [[nodiscard]] bool is_reference() const noexcept { return is_reference_; }
  [[nodiscard]] bool is_loaded() const noexcept { return static_cast<bool>(model_); }
  /// `compiled`: by torch, where that was asked for when it was loaded.
  [[nodiscard]] PyObject* model(bool compiled) const noexcept {
    return compiled && compiled_ ? compiled_.get() : model_.get();
  }
  /// "name: layout" of each parameter and buffer.
  [[nodiscard]] std::vector<std::string> parameters() const;

  /// What the problem's get_inputs returns.
  [[nodiscard]] Ref make_inputs(const MakeInputs& request) const;
  /// The reference in float64, as far as its code lets it: a model of its own, of equal weights.
  /// Throws PythonRaised.
  [[nodiscard]] PyObject* exact_model();

 private:
  [[nodiscard]] Ref compile(const std::string& source) const;
  [[nodiscard]] Ref run_module(const char* name, const std::string& source) const;
  [[nodiscard]] Ref own_init_inputs(PyObject* module, std::uint64_t init_seed) const;
  [[nodiscard]] Ref call_get_inputs(std::uint64_t input_seed) const;
  static Ref find_class(PyObject* module, const std::string& name);
  static Ref find_function(PyObject* module, const char* name);
  void construct(PyObject* model_class, PyObject* arguments, std::uint64_t init_seed);
  [[nodiscard]] Ref build_model(PyObject* model_class, PyObject* arguments) const;
  [[nodiscard]] bool is_module(PyObject* model) const;
  [[nodiscard]] std::string describe_parameter(PyObject* pair) const;

  const Core& core_;
  bool is_reference_ = false;
  std::uint64_t init_seed_ = 0;
  Ref model_;
  // Of a reference.
  Ref get_inputs_;
  Ref compiled_;     ///< Where it was asked for.
  Ref model_class_;  ///< Of this and of these arguments further models are made.
  Ref arguments_;
  Ref exact_model_;  ///< Once it was asked for.
};

}  // namespace drk::guest
