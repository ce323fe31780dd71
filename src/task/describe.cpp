// SPDX-License-Identifier: Apache-2.0
// Mismatches and failures as sentences.
#include "drk/task/describe.h"

#include <fmt/format.h>

namespace drk::task {

namespace {

std::string place_of(const Mismatch& mismatch) {
  return mismatch.first_index.empty()
             ? mismatch.path + ": "
             : fmt::format("{}: at [{}] ", mismatch.path, fmt::join(mismatch.first_index, ", "));
}

/// What a process could not send us was never compared: nothing was expected in its place.
std::string pair_of(const Mismatch& mismatch) {
  return mismatch.expected.empty()
             ? "got " + mismatch.got
             : fmt::format("expected {}, got {}", mismatch.expected, mismatch.got);
}

std::string share_of(const Mismatch& mismatch, const char* what) {
  if (mismatch.element_count < 2) return "";
  return fmt::format("; {} of {} elements {}", mismatch.wrong_count, mismatch.element_count, what);
}

}  // namespace

std::string describe(const Mismatch& mismatch) {
  const std::string pair = pair_of(mismatch);
  switch (mismatch.kind) {
    case MismatchKind::structure:
    case MismatchKind::device:
    case MismatchKind::dtype:
      return mismatch.path + ": " + pair;
    case MismatchKind::shape:
      return fmt::format(
          "{}: expected shape {}, got {}", mismatch.path, mismatch.expected, mismatch.got);
    case MismatchKind::subclass:
      return mismatch.path + ": " + pair + ", a subclass of Tensor that may compute later";
    case MismatchKind::unsupported:
      return mismatch.path + ": " + pair + ", which cannot be read";
    case MismatchKind::oversize:
      return mismatch.path + ": " + pair + ", far more than can be right";
    case MismatchKind::nan:
      return place_of(mismatch) + pair + share_of(mismatch, "differ in being NaN");
    case MismatchKind::infinity:
      return place_of(mismatch) + pair + share_of(mismatch, "differ in being infinite");
    case MismatchKind::value:
      break;
  }
  const std::string allowed =
      mismatch.tolerance > 0 ? fmt::format(" (allowed error {:.3g})", mismatch.tolerance) : "";
  return place_of(mismatch) + pair + allowed + share_of(mismatch, "are wrong");
}

std::string describe(const Failure& failure) {
  if (!failure.error) return failure.what;
  if (failure.error->message.empty()) return failure.error->type;
  return failure.error->type + ": " + failure.error->message;
}

const Failure* failure_of(const Outcome& outcome) noexcept {
  return std::visit(
      [](const auto& alternative) -> const Failure* {
        if constexpr (requires { alternative.failure.kind; }) return &alternative.failure;
        if constexpr (requires { alternative.failure->kind; }) {
          return alternative.failure ? &*alternative.failure : nullptr;
        }
        return nullptr;
      },
      outcome);
}

std::optional<KernelShare> share_of(const Profile& profile) {
  if (!profile.problem.empty()) return std::nullopt;
  KernelShare share;
  for (const KernelRecord& kernel : profile.kernels) {
    share.all_count += kernel.count;
    share.all_us += kernel.total_us;
    if (!is_own(kernel.origin)) continue;
    share.own_count += kernel.count;
    share.own_us += kernel.total_us;
  }
  return share;
}

}  // namespace drk::task
