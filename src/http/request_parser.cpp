// SPDX-License-Identifier: Apache-2.0
// Beast's parser, filling a Request in place.
#include "http/request_parser.h"

#include "drk/base/error.h"

#include "http/fields.h"
#include "http/target.h"

#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace drk::http {

namespace beast = boost::beast;

RequestParser::RequestParser(const ServerOptions& options, std::string_view peer)
    : max_header_bytes_(options.max_header_bytes), max_body_bytes_(options.max_body_bytes) {
  request_.peer = peer;
  header_limit(static_cast<std::uint32_t>(
      std::min<std::size_t>(max_header_bytes_, std::numeric_limits<std::uint32_t>::max())));
  // The claim of a head is judged after the handler had its say, so not by the parser.
  body_limit(boost::none);
}

RequestParser::Progress RequestParser::fail(std::uint32_t status, std::string what) {
  failure_ = Failure{status, std::move(what)};
  return Progress::failed;
}

RequestParser::Progress RequestParser::fail(const ErrorCodeOut& error) {
  if (!failure_.what.empty()) return Progress::failed;
  if (error == beast::http::error::header_limit) return fail(431, "header too long");
  if (error == beast::http::error::body_limit) return fail(413, "body too long");
  return fail(400, "malformed request: " + error.message());
}

RequestParser::Progress RequestParser::parse_head(beast::flat_buffer& input) {
  // RFC 9112, 2.2: an empty line before the request is to be ignored.
  const auto is_line_end = [](char c) { return c == '\r' || c == '\n'; };
  while (!got_some() && input.size() > 0 &&
         is_line_end(*static_cast<const char*>(input.data().data()))) {
    input.consume(1);
  }
  ErrorCodeOut error;
  const std::size_t used = put(input.data(), error);
  input.consume(used);
  head_bytes_ += used;
  // Beast takes complete lines as they come and applies its limit to each rest anew.
  const std::size_t known_bytes = head_bytes_ + (is_header_done() ? 0 : input.size());
  if (known_bytes > max_header_bytes_) return fail(431, "header too long");
  if (error == beast::http::error::need_more) return Progress::needs_more;
  if (error) return fail(error);
  is_head_complete_ = true;
  return check_head();
}

RequestParser::Progress RequestParser::check_head() {
  const Fields& headers = request_.headers;
  const auto hosts = std::count_if(
      headers.begin(), headers.end(), [](const auto& header) { return header.first == "host"; });
  if (hosts > 1 || (hosts == 0 && !is_http_1_0_)) {
    return fail(400, "malformed request: wanted one Host header");
  }
  // Any other coding leaves the length of the body unknown: what follows could be read as another
  // request by us and as a body by a proxy before us.
  const auto coding = request_.header("transfer-encoding");
  if (coding && (is_http_1_0_ || to_lower(*coding) != "chunked")) {
    return fail(400, "malformed request: the only known Transfer-Encoding is chunked");
  }
  body_limit(max_body_bytes_);
  eager(true);
  return Progress::complete;
}

RequestParser::Progress RequestParser::parse_body(beast::flat_buffer& input) {
  while (!is_done()) {
    if (input.size() == 0) return Progress::needs_more;
    ErrorCodeOut error;
    input.consume(put(input.data(), error));
    if (error == beast::http::error::need_more) {
      // Only the line that begins a chunk and the trailer are not taken as they come.
      if (input.size() > max_header_bytes_) return fail(431, "chunk header or trailer too long");
      return Progress::needs_more;
    }
    if (error) return fail(error);
  }
  return Progress::complete;
}

std::uint64_t RequestParser::claimed_body_bytes() const {
  return content_length().value_or(0);
}

bool RequestParser::expects_continue() const {
  const auto expected = request_.header("expect");
  return !is_http_1_0_ && expected && to_lower(*expected) == "100-continue";
}

AnswerForm RequestParser::answer_form() const {
  return {.head_only = is_head_method_, .http_1_0 = is_http_1_0_, .keep_alive = keep_alive()};
}

void RequestParser::on_request_impl(
    beast::http::verb verb, Text method, Text target, int version, ErrorCodeOut& error) {
  is_head_method_ = verb == beast::http::verb::head;
  is_http_1_0_ = version == 10;
  request_.method = is_head_method_ ? "GET" : std::string(method.data(), method.size());
  try {
    Target parsed = drk::http::parse_target({target.data(), target.size()});
    request_.path = std::move(parsed.path);
    request_.query = std::move(parsed.query);
  } catch (const Error& bad_target) {
    failure_ = Failure{400, bad_target.what()};
    error = beast::http::error::bad_target;
  }
}

void RequestParser::on_field_impl(beast::http::field /*field*/,
                                  Text name,
                                  Text value,
                                  ErrorCodeOut& /*error*/) {
  // A trailer comes after the handler was asked whether it takes such a head.
  if (is_head_complete_) return;
  request_.headers.emplace_back(to_lower({name.data(), name.size()}),
                                std::string(value.data(), value.size()));
}

void RequestParser::on_body_init_impl(const boost::optional<std::uint64_t>& length,
                                      ErrorCodeOut& /*error*/) {
  if (length) request_.body.reserve(static_cast<std::size_t>(*length));
}

std::size_t RequestParser::on_body_impl(Text body, ErrorCodeOut& /*error*/) {
  request_.body.append(body.data(), body.size());
  return body.size();
}

std::size_t RequestParser::on_chunk_body_impl(std::uint64_t /*left*/,
                                              Text body,
                                              ErrorCodeOut& /*error*/) {
  request_.body.append(body.data(), body.size());
  return body.size();
}

void RequestParser::on_response_impl(int /*status*/,
                                     Text /*reason*/,
                                     int /*version*/,
                                     ErrorCodeOut& /*error*/) {}
void RequestParser::on_header_impl(ErrorCodeOut& /*error*/) {}
void RequestParser::on_chunk_header_impl(std::uint64_t /*size*/,
                                         Text /*extensions*/,
                                         ErrorCodeOut& /*error*/) {}
void RequestParser::on_finish_impl(ErrorCodeOut& /*error*/) {}

}  // namespace drk::http
