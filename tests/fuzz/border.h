// SPDX-License-Identifier: Apache-2.0
// Servers in this process, and what any client may do to them.
#pragma once

#include "drk/base/json.h"
#include "drk/gym/server.h"
#include "drk/http.h"

#include "fuzz/answers.h"
#include "fuzz/connection.h"
#include "fuzz/contract.h"
#include "fuzz/finding.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace drk::fuzz {

/// A server without workers, in a folder that is gone with it.
class Serving {
 public:
  static constexpr const char* kToken = "fuzz-token-0123456789";

  explicit Serving(bool needs_token) {
    std::string name = std::filesystem::temp_directory_path() / "fuzz_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw_errno("mkdtemp " + name);
    folder_ = name;
    // Small, so that small inputs reach the limits.
    gym::ServerOptions options;
    options.slots = 0;
    options.max_pending = 24;
    options.data_dir = folder_ + "/data";
    options.log_file = folder_ + "/log";
    options.http.max_header_bytes = std::size_t{2} << 10;
    options.http.max_body_bytes = std::size_t{128} << 10;
    if (needs_token) options.tokens = {{kToken, "somebody"}};
    server_ = std::make_unique<gym::Server>(options);
    http::ClientOptions client;
    client.url = server_->url();
    if (needs_token) client.token = kToken;
    client.timeout = std::chrono::seconds(20);
    client_ = std::make_unique<http::Client>(client);
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;
  ~Serving() {
    client_.reset();
    server_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return server_->port(); }

  /// Every wait for a task ends by this, since nobody judges it.
  void cancel_all() {
    const json::Value tasks = get("/tasks?state=pending&limit=1000");
    for (const json::Value& task : tasks.at("tasks").as_array()) {
      const json::Value& id = task.at("task_id");
      const std::string target = "/tasks/" + http::percent_encode(id.as_string());
      const std::uint32_t status = client_->send("DELETE", target).status;
      expect(status == 200 || status == 404, "a pending task that cannot be cancelled");
    }
  }

  void check_health() { expect(get("/health").at("status") == "healthy", "not healthy"); }

 private:
  [[nodiscard]] json::Value get(const std::string& target) {
    const http::Answer answer = client_->send("GET", target);
    expect(answer.status == 200, target + " fails");
    return parsed(answer.body);
  }

  std::string folder_;
  std::unique_ptr<gym::Server> server_;
  std::unique_ptr<http::Client> client_;
};

/// Not thread-safe.
class Border {
 public:
  /// Sends `bytes` over a connection of its own. Throws Finding when an answer is not what
  /// docs/http-api.md promises, none comes, or the server is not well afterwards.
  void replay(std::string_view bytes) {
    const bool has_token = holds(bytes, "authorization:");
    Serving& server = serving(has_token ? with_tokens_ : open_, has_token);
    const Received received =
        Connection(server.port()).exchange(bytes, [&] { server.cancel_all(); });
    const bool may_be_bodiless = holds(bytes, "head ");
    AnswerReader answers(received.bytes, {may_be_bodiless, received.was_reset});
    bool is_answered = received.was_reset || is_blank(bytes);
    while (const std::optional<http::Answer> answer = answers.next()) {
      check_answer(*answer, may_be_bodiless);
      is_answered = true;
    }
    expect(is_answered, "closed without an answer");
    if (++replays_ % kCheckEvery == 0) server.check_health();
    if (replays_ % kCancelEvery == 0) server.cancel_all();
    if (replays_ % kRestartEvery == 0) (has_token ? with_tokens_ : open_).reset();
  }

 private:
  static constexpr std::uint64_t kCheckEvery = 16;
  static constexpr std::uint64_t kCancelEvery = 100;
  /// Tasks stay in the store for good.
  static constexpr std::uint64_t kRestartEvery = 20'000;

  static Serving& serving(std::unique_ptr<Serving>& kept, bool needs_token) {
    if (!kept) kept = std::make_unique<Serving>(needs_token);
    return *kept;
  }

  /// In letters of either case; `part` is in lower case.
  static bool holds(std::string_view text, std::string_view part) {
    const auto is_same = [](char a, char b) {
      return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
    };
    return std::search(text.begin(), text.end(), part.begin(), part.end(), is_same) != text.end();
  }

  static bool is_blank(std::string_view bytes) {
    return bytes.find_first_not_of("\r\n") == std::string_view::npos;
  }

  std::unique_ptr<Serving> open_;
  std::unique_ptr<Serving> with_tokens_;
  std::uint64_t replays_ = 0;
};

}  // namespace drk::fuzz
