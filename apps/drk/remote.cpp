// SPDX-License-Identifier: Apache-2.0
// Requests to a server, its refusals as errors.
#include "remote.h"

#include "drk/base/error.h"

#include "terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace drk::cli {

namespace {

ErrorCode code_of(std::uint32_t status) {
  switch (status) {
    case 404:
      return ErrorCode::not_found;
    case 409:
      return ErrorCode::conflict;
    case 429:
      return ErrorCode::exhausted;
    default:
      return status >= 500 ? ErrorCode::unavailable : ErrorCode::invalid_argument;
  }
}

/// What an error's body says: `message`, else `detail`.
std::string reason_of(const http::Answer& answer) {
  try {
    const json::Value body = json::parse(answer.body);
    if (const json::Object* object = body.if_object()) {
      return text_of(*object, "message", text_of(*object, "detail", answer.body));
    }
  } catch (const Error&) {  // no JSON: something else than our server answers there
  }
  return answer.body.substr(0, 200);
}

}  // namespace

std::string text_of(const json::Object& object,
                    std::string_view name,
                    const std::string& fallback) {
  const json::Value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : fallback;
}

void Remote::declare(CLI::App& command) {
  command.add_option("--server", url_, "URL of the server, else DRK_SERVER")
      ->default_str("http://127.0.0.1:10907");
  command.add_option("--token", token_, "Bearer token, else DRK_TOKEN");
  command.add_option("--ca-file", ca_file_, "PEM file of authorities to trust for https");
}

void Remote::connect(const Surroundings& surroundings) {
  http::ClientOptions options;
  if (url_.empty()) url_ = surroundings.server;
  if (url_.empty()) url_ = options.url;
  options.url = url_;
  options.token = token_.empty() ? surroundings.token : token_;
  options.ca_file = ca_file_;
  client_ = std::make_unique<http::Client>(options);
}

std::string Remote::ask_text(std::string_view method,
                             const std::string& target,
                             std::string_view body,
                             const std::stop_token& stop) {
  http::Answer answer = client_->send(method, target, body, {}, stop);
  if (answer.status < 400) return std::move(answer.body);
  throw Error(code_of(answer.status),
              fmt::format("{} answers {}: {}", url_, answer.status, one_line(reason_of(answer))));
}

json::Value Remote::ask(std::string_view method,
                        const std::string& target,
                        std::string_view body,
                        const std::stop_token& stop) {
  return json::parse(ask_text(method, target, body, stop));
}

}  // namespace drk::cli
