// SPDX-License-Identifier: Apache-2.0
// Failures as replies.
#include "http/failure.h"

namespace drk::http {

Reply describe(Handler& handler, const Failure& failure) {
  Reply reply;
  try {
    reply = handler.describe_failure(failure.status, failure.what);
  } catch (...) {  // the border to the handler
    reply.body = failure.what;
    reply.content_type = "text/plain";
  }
  reply.status = failure.status;
  if (failure.status == 503) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

}  // namespace drk::http
