// SPDX-License-Identifier: Apache-2.0
// Puts the parts together, and takes them apart in the order in which they need each other.
#include "drk/gym/server.h"

#include "drk/version.h"

#include "gym/api.h"
#include "gym/ending.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <pthread.h>

namespace drk::gym {

namespace {

constexpr std::uint32_t kCrewThreads = 2;
constexpr std::chrono::seconds kHttpDrain(2);

SqliteOptions store_options(const ServerOptions& options) {
  SqliteOptions store;
  store.folder = options.data_dir;
  store.max_pending = options.max_pending;
  store.max_attempts = options.max_attempts;
  store.generation = options.generation;
  store.result_of_end = result_without_verdict;
  return store;
}

ApiOptions api_options(const ServerOptions& options) {
  ApiOptions api;
  api.tokens = options.tokens;
  api.max_pending = options.max_pending;
  api.abandon_after = options.abandon_after;
  if (!options.worker.gpus.empty()) api.mode = json::name_of(task::Mode::gpu);
  return api;
}

/// What is said of a task before it has been given a device.
std::string device_of(const std::vector<gpu::Device>& gpus) {
  if (gpus.empty()) return "cpu";
  return gpus.size() == 1 ? "cuda:" + gpus.front().uuid : "cuda";
}

void check_address(const ServerOptions& options) {
  if (is_loopback(options.http.host) || !options.tokens.empty()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} can be reached from elsewhere: give clients tokens (--tokens FILE), "
                          "or listen on 127.0.0.1",
                          options.http.host));
}

}  // namespace

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24U) == 127;
  const std::string bare =
      host.size() > 2 && host.front() == '[' ? host.substr(1, host.size() - 2) : host;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, bare.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

class Server::Impl {
 public:
  explicit Impl(ServerOptions options)
      : options_((check_address(options), std::move(options))),
        log_({options_.log_debug ? LogLevel::debug : LogLevel::info, options_.log_file}),
        clock_(1, [this](const char* what) { note_fault(what); }),
        crew_(kCrewThreads, [this](const char* what) { note_fault(what); }) {
    store_ = std::make_unique<SqliteStore>(store_options(options_));
    if (options_.slots > 0) {
      evaluator_ = std::make_unique<worker::Evaluator>(options_.worker);
      PipelineOptions pipeline;
      pipeline.slots = options_.slots;
      pipeline.device = device_of(options_.worker.gpus);
      pipeline_ =
          std::make_unique<Pipeline>(pipeline, *evaluator_, *store_, clock_, metrics_, log_);
    }
    const ApiParts parts{*store_, *store_, pipeline_.get(), crew_, metrics_, log_};
    api_ = std::make_unique<Api>(api_options(options_), parts);
    store_->listen([this](const TaskView& task) {
      if (pipeline_) pipeline_->on_change(task);
      api_->on_change(task);
    });
    http_ = std::make_unique<http::Server>(options_.http, *api_);
    api_->count_connections([this] { return http_->counts(); });
    if (pipeline_) pipeline_->start();
    starter_ = std::jthread([this] { start_worker(); });
    ::pthread_setname_np(starter_.native_handle(), "drk-starter");
    const QueueCounts counts = store_->counts();
    log_.info("server started",
              {{"version", kVersion},
               {"url", url()},
               {"data_dir", options_.data_dir},
               {"slots", options_.slots},
               {"pending", counts.pending()},
               {"stored", counts.stored}});
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    drain(std::chrono::milliseconds(0));
    api_->count_connections({});
    http_.reset();
    starter_.join();
    crew_.stop();
    clock_.stop();
    // Completes what was asked for; what that calls finds the crew stopped and the rest alive.
    store_.reset();
    pipeline_.reset();
    api_.reset();
  }

  void drain(std::chrono::milliseconds limit) {
    if (is_drained_.exchange(true)) return;
    log_.info("server stopping", {{"limit_ms", limit.count()}});
    api_->stop();
    http_->drain(kHttpDrain);
    if (pipeline_) pipeline_->drain(limit);
    const QueueCounts counts = store_->counts();
    log_.info("server stopped", {{"pending", counts.pending()}, {"stored", counts.stored}});
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return http_->port(); }
  [[nodiscard]] std::string url() const {
    const bool is_v6 =
        options_.http.host.find(':') != std::string::npos && options_.http.host.front() != '[';
    return fmt::format("{}://{}{}{}:{}",
                       options_.http.tls_certificate_file.empty() ? "http" : "https",
                       is_v6 ? "[" : "",
                       options_.http.host,
                       is_v6 ? "]" : "",
                       port());
  }

 private:
  void note_fault(const char* what) { log_.error("job failed", {{"error", what}}); }

  /// Ahead of the first task, so that it does not wait for Python; the body of a thread.
  void start_worker() noexcept {
    if (options_.slots == 0) return api_->set_problem("healthy", "");
    try {
      const worker::Environment environment = evaluator_->environment();
      log_.info("worker ready",
                {{"torch", environment.versions.torch},
                 {"triton", environment.versions.triton},
                 {"missing_isolation", environment.isolation.missing.size()}});
      if (!is_drained_) api_->set_problem("healthy", "");
    } catch (const std::exception& error) {
      log_.error("worker does not start", {{"error", error.what()}});
      if (!is_drained_) api_->set_problem("degraded", error.what());
    }
  }

  const ServerOptions options_;
  Log log_;
  Metrics metrics_;
  // These outlive whatever holds a timer of theirs: see the destructor.
  Crew clock_;  ///< Leases and deadlines, which clients' work must not hold up.
  Crew crew_;   ///< Answers.
  std::unique_ptr<worker::Evaluator> evaluator_;  ///< None without slots.
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<SqliteStore> store_;  ///< Its thread calls the two above.
  std::unique_ptr<http::Server> http_;
  std::jthread starter_;
  std::atomic<bool> is_drained_ = false;
};

Server::Server(ServerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Server::~Server() = default;

std::uint16_t Server::port() const noexcept {
  return impl_->port();
}

std::string Server::url() const {
  return impl_->url();
}

void Server::drain(std::chrono::milliseconds limit) {
  impl_->drain(limit);
}

}  // namespace drk::gym
