// SPDX-License-Identifier: Apache-2.0
// A server that commands talk to.
#pragma once

#include "drk/base/json.h"
#include "drk/http.h"

#include "surroundings.h"

#include <memory>
#include <stop_token>
#include <string>

namespace CLI {
class App;
}

namespace drk::cli {

/// --server and --token, with what the environment says as their defaults.
class Remote {
 public:
  void declare(CLI::App& command);
  /// After parsing, before the first request.
  void connect(const Surroundings& surroundings);
  [[nodiscard]] const std::string& url() const noexcept { return url_; }

  /// The body of an answer below 400. Else throws Error with what the server says: not_found,
  /// invalid_argument, conflict, exhausted, unavailable.
  [[nodiscard]] json::Value ask(std::string_view method,
                                const std::string& target,
                                std::string_view body = {},
                                const std::stop_token& stop = {});
  [[nodiscard]] std::string ask_text(std::string_view method,
                                     const std::string& target,
                                     std::string_view body = {},
                                     const std::stop_token& stop = {});

 private:
  std::string url_;
  std::string token_;
  std::string ca_file_;
  std::unique_ptr<http::Client> client_;
};

/// The text member of that name, or what stands in for it.
[[nodiscard]] std::string text_of(const json::Object& object,
                                  std::string_view name,
                                  const std::string& fallback = "");

}  // namespace drk::cli
