// SPDX-License-Identifier: Apache-2.0
// A server in a folder that is gone with the test, and a client of it.
#pragma once

#include "drk/base/error.h"
#include "drk/base/fd.h"
#include "drk/base/json.h"
#include "drk/gym/server.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

namespace drk::gym::test {

class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "gym_test_XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// What came back, parsed.
struct Got {
  std::uint32_t status = 0;
  json::Value body;
  http::Answer raw;

  [[nodiscard]] const json::Object& object() const { return body.get_object(); }
  [[nodiscard]] std::string text(const char* name) const {
    const json::Value* value = object().if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
  }
};

class Serving {
 public:
  /// Without workers unless `options` say so.
  explicit Serving(ServerOptions options = without_workers()) : options_(std::move(options)) {
    if (options_.data_dir.empty()) options_.data_dir = folder_.path() + "/data";
    options_.log_file = folder_.path() + "/log";
    start();
  }

  [[nodiscard]] static ServerOptions without_workers() {
    ServerOptions options;
    options.slots = 0;
    return options;
  }

  void start() { server_ = std::make_unique<Server>(options_); }
  void stop() { server_.reset(); }
  [[nodiscard]] Server& server() { return *server_; }
  [[nodiscard]] std::string url() const { return server_->url(); }
  [[nodiscard]] std::string log() const { return read_file(options_.log_file); }

  [[nodiscard]] Got send(std::string_view method,
                         const std::string& target,
                         const std::string& body = {},
                         const http::Fields& headers = {}) const {
    http::ClientOptions options;
    options.url = server_->url();
    http::Client client(options);
    Got got;
    got.raw = client.send(method, target, body, headers);
    got.status = got.raw.status;
    if (!got.raw.body.empty() && (got.raw.body[0] == '{' || got.raw.body[0] == '[')) {
      got.body = json::parse(got.raw.body);
    }
    return got;
  }
  [[nodiscard]] Got get(const std::string& target) const { return send("GET", target); }
  [[nodiscard]] Got post(const std::string& target, const json::Object& body) const {
    return send("POST", target, json::dump(body));
  }

 private:
  const Folder folder_;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

/// The smallest request that is valid; `members` (JSON text of an object) over it.
inline json::Object request(const std::string& id, const std::string& members = "{}") {
  json::Object body;
  body["task_id"] = id;
  body["reference_code"] = "class Model: pass";
  body["kernel_code"] = "class ModelNew: pass";
  const json::Value parsed = json::parse(members);
  for (const auto& entry : parsed.get_object()) body[entry.key()] = entry.value();
  return body;
}

inline json::Object batch(const std::string& id, const std::vector<json::Object>& tasks) {
  boost::json::array list;
  for (const json::Object& task : tasks) list.emplace_back(task);
  json::Object body;
  body["batch_id"] = id;
  body["tasks"] = std::move(list);
  return body;
}

}  // namespace drk::gym::test
