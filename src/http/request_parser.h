// SPDX-License-Identifier: Apache-2.0
// One request, from bytes to a Request, within the limits of the server.
#pragma once

#include "drk/http.h"

#include "http/failure.h"
#include "http/reply_head.h"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace drk::http {

class RequestParser final : private boost::beast::http::basic_parser<true> {
 public:
  enum class Progress { complete, needs_more, failed };

  RequestParser(const ServerOptions& options, std::string_view peer);

  /// Takes the head, and nothing after it, from the front of `input`.
  [[nodiscard]] Progress parse_head(boost::beast::flat_buffer& input);
  /// Takes what there is of the body, once the head is complete.
  [[nodiscard]] Progress parse_body(boost::beast::flat_buffer& input);
  /// Why one of them failed.
  [[nodiscard]] const Failure& failure() const noexcept { return failure_; }

  // Once the head is complete.
  [[nodiscard]] bool has_unread_body() const noexcept { return !is_done(); }
  [[nodiscard]] bool is_chunked() const noexcept { return chunked(); }
  /// What the head claims; 0 for chunks.
  [[nodiscard]] std::uint64_t claimed_body_bytes() const;
  [[nodiscard]] bool expects_continue() const;
  [[nodiscard]] AnswerForm answer_form() const;

  /// HEAD reads as GET: only the form of the answer differs.
  [[nodiscard]] Request& request() noexcept { return request_; }

 private:
  using Base = boost::beast::http::basic_parser<true>;
  using Text = boost::beast::string_view;
  using ErrorCodeOut = boost::beast::error_code;

  [[nodiscard]] Progress fail(std::uint32_t status, std::string what);
  [[nodiscard]] Progress fail(const ErrorCodeOut& error);
  /// What Beast lets pass and RFC 9112 does not.
  [[nodiscard]] Progress check_head();

  void on_request_impl(boost::beast::http::verb verb,
                       Text method,
                       Text target,
                       int version,
                       ErrorCodeOut& error) override;
  void on_response_impl(int status, Text reason, int version, ErrorCodeOut& error) override;
  void on_field_impl(boost::beast::http::field field,
                     Text name,
                     Text value,
                     ErrorCodeOut& error) override;
  void on_header_impl(ErrorCodeOut& error) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& length,
                         ErrorCodeOut& error) override;
  std::size_t on_body_impl(Text body, ErrorCodeOut& error) override;
  void on_chunk_header_impl(std::uint64_t size, Text extensions, ErrorCodeOut& error) override;
  std::size_t on_chunk_body_impl(std::uint64_t left, Text body, ErrorCodeOut& error) override;
  void on_finish_impl(ErrorCodeOut& error) override;

  const std::size_t max_header_bytes_;
  const std::size_t max_body_bytes_;
  std::size_t head_bytes_ = 0;
  bool is_head_complete_ = false;
  bool is_head_method_ = false;
  bool is_http_1_0_ = false;
  Request request_;
  Failure failure_;
};

}  // namespace drk::http
