// SPDX-License-Identifier: Apache-2.0
// Expecting a drk::Error with its code and a part of its text.
#pragma once

#include "drk/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace drk {

/// Passes when `action` throws Error{code} whose text contains `part`.
template <class Action>
[[nodiscard]] testing::AssertionResult throws_error(ErrorCode code,
                                                    const std::string& part,
                                                    const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string text = error.what();
    if (error.code() == code && text.find(part) != std::string::npos) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure()
           << "threw Error{" << to_string(error.code()) << "}: " << text << "; wanted Error{"
           << to_string(code) << "} with \"" << part << "\"";
  }
  return testing::AssertionFailure() << "threw nothing; wanted \"" << part << "\"";
}

}  // namespace drk
