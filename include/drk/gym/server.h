// SPDX-License-Identifier: Apache-2.0
// The whole server in one process: store, workers, HTTP interface.
#pragma once

#include "drk/gym/sqlite_store.h"
#include "drk/http.h"
#include "drk/worker.h"

#include <boost/describe.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace drk::gym {

struct ServerOptions {
  http::ServerOptions http;
  worker::Options worker;
  std::string data_dir;     ///< Of the store; made when it is not there.
  std::uint32_t slots = 2;  ///< Evaluations side by side; 0: takes tasks and runs none.
  std::uint64_t max_pending = SqliteOptions().max_pending;
  std::uint32_t max_attempts = SqliteOptions().max_attempts;
  std::chrono::milliseconds abandon_after{120'000};
  std::map<std::string, std::string> tokens;  ///< Name by token; empty: nobody needs one.
  std::string log_file;                       ///< Empty: standard error.
  bool log_debug = false;
  std::string generation;  ///< Results of other generations are not reused.
};

/// Serves from construction to destruction. Thread-safe.
class Server {
 public:
  /// Throws Error{invalid_argument} for an address beyond loopback without tokens, and as
  /// SqliteStore and http::Server do.
  explicit Server(ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::string url() const;
  /// Refuses what comes, tells who waits to come back, lets evaluations go on for `limit`, gives
  /// back the rest. What was accepted stays in the store.
  void drain(std::chrono::milliseconds limit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// True for "localhost", 127.0.0.0/8, ::1.
[[nodiscard]] bool is_loopback(const std::string& host);

}  // namespace drk::gym
