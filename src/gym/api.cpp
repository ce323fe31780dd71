// SPDX-License-Identifier: Apache-2.0
// Routing, who asks, replies and errors.
#include "gym/api.h"

#include "drk/base/clock.h"
#include "drk/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace drk::gym {

namespace {

constexpr std::size_t kLargeBodyBytes = std::size_t{64} << 10;  // parsed on the crew
constexpr double kMaxWaitS = 300;
constexpr std::uint64_t kMaxRetryAfterS = 60;

char lower_case(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// A Bearer token, or empty.
std::string_view token_of(const http::Request& request) {
  const std::string_view value = request.header("authorization").value_or("");
  constexpr std::string_view kScheme = "bearer ";
  if (value.size() <= kScheme.size()) return {};
  const bool is_bearer =
      std::equal(kScheme.begin(), kScheme.end(), value.begin(), [](char a, char b) {
        return a == lower_case(b);
      });
  return is_bearer ? value.substr(kScheme.size()) : std::string_view();
}

struct Match {
  const Route* route = nullptr;
  std::string argument;
};

/// The rest of `path` where the route has its argument, when it fits.
std::optional<std::string> fit(const Route& route, const std::string& path) {
  const std::string_view pattern = route.path;
  const std::size_t brace = pattern.find('{');
  if (brace == std::string_view::npos) {
    return path == pattern ? std::optional(std::string()) : std::nullopt;
  }
  if (path.size() <= brace || !path.starts_with(pattern.substr(0, brace))) return std::nullopt;
  return path.substr(brace);
}

/// The first route of that path and method; `allowed` gets the methods that the path has.
Match find_route(const std::string& method, const std::string& path, std::string& allowed) {
  for (const Route& route : routes()) {
    std::optional<std::string> argument = fit(route, path);
    if (!argument) continue;
    if (method == route.method) return {&route, *std::move(argument)};
    allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
  }
  return {};
}

std::uint32_t http_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return 400;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::conflict:
      return 409;
    case ErrorCode::exhausted:
      return 429;
    case ErrorCode::unavailable:
    case ErrorCode::timed_out:
      return 503;
    case ErrorCode::corrupt:
    case ErrorCode::internal:
      break;
  }
  return 500;
}

}  // namespace

http::Reply detail_reply(std::uint32_t status, const std::string& detail) {
  http::Reply reply;
  reply.status = status;
  reply.body = json::dump(json::to_json(DetailAnswer{detail}));
  return reply;
}

Api::Api(ApiOptions options, const ApiParts& parts)
    : options_(std::move(options)),
      queue_(parts.queue),
      results_(parts.results),
      pipeline_(parts.pipeline),
      crew_(parts.crew),
      metrics_(parts.metrics),
      log_(parts.log),
      begin_ns_(now_ns()),
      waiters_(parts.queue, parts.crew),
      interest_(parts.crew, options_.abandon_after, [this](const std::string& task_id) {
        log_.info("task abandoned", {{"task_id", task_id}});
        queue_.cancel(task_id, {});
      }) {}

std::optional<http::Reply> Api::refuse(const http::Request& head) {
  std::optional<http::Reply> refusal = refusal_of(head);
  if (refusal) {
    metrics_.count("drk_http_requests_total",
                   {{"route", "none"}, {"status", std::to_string(refusal->status)}});
  }
  return refusal;
}

std::optional<http::Reply> Api::refusal_of(const http::Request& head) const {
  std::string allowed;
  const Match match = find_route(head.method, head.path, allowed);
  if (match.route == nullptr) {
    if (allowed.empty()) return detail_reply(404, "no such path: " + head.path);
    http::Reply reply = detail_reply(405, fmt::format("{} takes {}", head.path, allowed));
    reply.headers.emplace_back("Allow", allowed);
    return reply;
  }
  if (options_.tokens.empty() || match.route->is_open) return std::nullopt;
  if (options_.tokens.contains(std::string(token_of(head)))) return std::nullopt;
  http::Reply reply = detail_reply(401, "a bearer token is needed, and this is none of them");
  reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

void Api::handle(http::Request request, std::shared_ptr<http::Exchange> exchange) {
  auto call = std::make_shared<Call>();
  call->begin_ns = now_ns();
  std::string allowed;
  Match match = find_route(request.method, request.path, allowed);
  DRK_CHECK(match.route != nullptr);  // else `refuse` did
  call->route = match.route;
  call->argument = std::move(match.argument);
  call->client = client_of(request);
  call->request = std::move(request);
  call->exchange = std::move(exchange);
  const auto answer = [this, call] { guard(call, [&] { (this->*call->route->answer)(call); }); };
  if (call->route->is_slow || call->request.body.size() > kLargeBodyBytes) {
    crew_.post(answer);
  } else {
    answer();
  }
}

http::Reply Api::describe_failure(std::uint32_t status, std::string_view what) {
  metrics_.count("drk_http_requests_total",
                 {{"route", "none"}, {"status", std::to_string(status)}});
  if (status != 400) return detail_reply(status, std::string(what));
  return error_reply(Error(ErrorCode::invalid_argument, std::string(what)));
}

void Api::on_change(const TaskView& task) {
  if (is_final(task.state)) {
    interest_.ended(task.id);
    metrics_.count("drk_tasks_finished_total", {{"status", json::name_of(task.state)}});
  }
  waiters_.on_change(task);
}

void Api::stop() {
  is_stopping_ = true;
  set_problem("stopping", "the server is stopping");
  waiters_.release_all();
}

void Api::set_problem(const std::string& status, const std::string& problem) {
  const std::lock_guard lock(mutex_);
  health_status_ = status;
  health_problem_ = problem;
}

void Api::count_connections(std::function<http::ServerCounts()> counts) {
  const std::lock_guard lock(mutex_);
  counts_ = std::move(counts);
}

void Api::guard(const CallPtr& call, const std::function<void()>& answer) {
  try {
    answer();
  } catch (const Error& error) {
    reply_error(call, error);
  } catch (const std::exception& error) {  // a library's fault: ours to explain, not the caller's
    reply_error(call, Error(ErrorCode::internal, error.what()));
  }
}

void Api::reply(const CallPtr& call, std::uint32_t status, const json::Value& body) {
  http::Reply reply;
  reply.status = status;
  reply.body = json::dump(body);
  this->reply(call, std::move(reply));
}

void Api::reply(const CallPtr& call, http::Reply reply) {
  note_answer(*call, reply.status);
  call->exchange->reply(std::move(reply));
}

void Api::reply_error(const CallPtr& call, const Error& error) {
  const std::uint32_t status = http_status(error.code());
  if (status == 500) {
    log_.error("request failed", {{"path", call->request.path}, {"error", error.what()}});
  }
  reply(call, error_reply(error));
}

void Api::finish_stream(const CallPtr& call) {
  note_answer(*call, 200);
  call->exchange->finish();
}

void Api::note_answer(const Call& call, std::uint32_t status) {
  metrics_.count("drk_http_requests_total",
                 {{"route", call.route->path}, {"status", std::to_string(status)}});
  const double seconds = static_cast<double>(now_ns() - call.begin_ns) * 1e-9;
  metrics_.observe("drk_http_request_seconds", seconds, {{"route", call.route->path}});
  log_.debug("request",
             {{"method", call.request.method},
              {"path", call.request.path},
              {"client", call.client},
              {"status", status},
              {"seconds", seconds}});
}

http::Reply Api::error_reply(const Error& error) const {
  const std::uint32_t status = http_status(error.code());
  if (status == 400) {
    InvalidAnswer answer;
    answer.message = error.what();
    answer.timestamp = utc_now_text();
    http::Reply reply;
    reply.status = status;
    reply.body = json::dump(json::to_json(answer));
    reply.headers.emplace_back("X-Error-Code", answer.error_code);
    return reply;
  }
  http::Reply reply = detail_reply(status, status == 500 ? "internal error" : error.what());
  if (status == 429 || status == 503) {
    reply.headers.emplace_back("Retry-After", std::to_string(retry_after_s()));
  }
  if (status == 503 || status == 500) reply.headers.emplace_back("X-Error-Code", "SYSTEM_ERROR");
  return reply;
}

std::uint64_t Api::retry_after_s() const {
  const Histogram evaluations = metrics_.histogram("drk_evaluation_seconds");
  if (pipeline_ == nullptr || evaluations.count() == 0) return 5;
  const double mean_s = evaluations.sum_s() / static_cast<double>(evaluations.count());
  // Until a twentieth of the queue is done: there is room again, and not for everybody at once.
  const double s = mean_s * static_cast<double>(queue_.counts().pending()) / 20 /
                   static_cast<double>(std::max<std::size_t>(pipeline_->slots().size(), 1));
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(s)), 1, kMaxRetryAfterS);
}

std::string Api::client_of(const http::Request& request) const {
  if (!options_.tokens.empty()) {
    const auto found = options_.tokens.find(std::string(token_of(request)));
    return found == options_.tokens.end() ? request.peer : found->second;
  }
  const auto named = request.header("x-drk-client");
  constexpr std::size_t kMaxName = 100;
  if (!named || named->empty()) return request.peer;
  std::string_view name = named->substr(0, kMaxName);
  while (name.size() < named->size() && !is_valid_utf8(name)) name.remove_suffix(1);
  return std::string(name);
}

json::Object Api::body_of(Call& call) {
  // Not kept: the call may wait for hours, and its share of the memory for bodies with it.
  const std::string body = std::move(call.request.body);
  const std::shared_ptr<void> share = std::move(call.request.body_share);
  if (const auto at = first_invalid_utf8(body)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("body: not UTF-8 at byte {}", *at));
  }
  json::Value value = json::parse(body);
  if (!value.is_object()) json::detail::fail("body", "an object", value);
  return std::move(value.get_object());
}

std::optional<std::chrono::milliseconds> Api::wait_of(const Call& call) {
  const auto text = call.request.parameter("wait");
  if (!text) return std::nullopt;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  if (error != std::errc() || end != text->data() + text->size() || !(seconds >= 0)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("wait: \"{}\" is no number of seconds from 0 to {}", *text, kMaxWaitS));
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(seconds, kMaxWaitS) * 1000));
}

bool Api::is_async(const Call& call) {
  if (const auto value = call.request.parameter("async")) {
    if (*value == "1" || *value == "true" || value->empty()) return true;
    if (*value == "0" || *value == "false") return false;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("async: \"{}\" is neither 1 nor 0", *value));
  }
  std::string preference(call.request.header("prefer").value_or(""));
  std::transform(preference.begin(), preference.end(), preference.begin(), lower_case);
  return preference.find("respond-async") != std::string::npos;
}

}  // namespace drk::gym
