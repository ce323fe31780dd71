// SPDX-License-Identifier: Apache-2.0
// A result for people.
#include "render_verdict.h"

#include "drk/base/json.h"
#include "drk/suite.h"

#include "command.h"
#include "render_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace drk::cli {

namespace {

constexpr std::size_t kLabelWidth = 8;
constexpr std::size_t kTailLines = 10;
constexpr std::size_t kMaxKernelLines = 12;
constexpr double kMinStageMs = 1;  // shorter ones tell nothing

using suite::describe_us;

// The outcome in words, as it follows "REJECTED: ".
std::string words(const task::Accepted&) {
  return "accepted";
}
std::string words(const task::WrongOutput& wrong) {
  return fmt::format(
      "wrong output ({} of {} trials passed)", wrong.trials_passed, wrong.trials_run);
}
std::string words(const task::CompileFailed& failed) {
  return fmt::format("it does not load ({})", json::name_of(failed.failure.kind));
}
std::string words(const task::RuntimeFailed&) {
  return "forward raised an exception";
}
std::string words(const task::Crashed&) {
  return "its process died";
}
std::string words(const task::TimedOut& late) {
  const std::string stage = json::name_of(late.failure.stage);
  return late.failure.limit_s
             ? fmt::format("out of time in {} (limit {:g} s)", stage, *late.failure.limit_s)
             : "out of time in " + stage;
}
std::string words(const task::ResourceExhausted& greedy) {
  return fmt::format("over a limit ({})", json::name_of(greedy.failure.kind));
}
std::string words(const task::Rejected& rejected) {
  return json::name_of(rejected.reason);
}
std::string words(const task::Invalid&) {
  return "it cannot be judged";
}
std::string words(const task::Undecided&) {
  return "the machine is at fault";
}

std::string accepted_words(const task::Accepted& accepted, task::Mode mode) {
  if (accepted.speedup) {
    std::string text =
        fmt::format("ACCEPTED: {:.3g} times as fast as the reference", *accepted.speedup);
    if (accepted.coverage) {
      text += fmt::format(", {:.0f} % of the time in its own kernels", 100 * *accepted.coverage);
    }
    return text;
  }
  return mode == task::Mode::interpreter ? "ACCEPTED: right, by Triton's interpreter"
                                         : "ACCEPTED: right";
}

/// A label and the lines it stands for, aligned.
std::string section(const std::string& label, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += fmt::format("{:<{}}  {}\n", text.empty() ? label : "", kLabelWidth, line);
  }
  return text;
}

std::string paint_severity(task::Severity severity, const Style& style) {
  std::string word = fmt::format("{:<6}", json::name_of(severity));
  switch (severity) {
    case task::Severity::reject:
      return style.bad(word);
    case task::Severity::warn:
      return style.doubtful(word);
    case task::Severity::note:
      return style.faint(word);
  }
  return word;
}

std::vector<std::string> finding_lines(const task::Verdict& verdict, const Style& style) {
  std::vector<std::string> lines;
  for (const task::Finding& finding : verdict.findings) {
    lines.push_back(fmt::format("{}  {}: {}",
                                paint_severity(finding.severity, style),
                                json::name_of(finding.reason),
                                one_line(finding.evidence)));
  }
  return lines;
}

std::string timing_line(const std::string& who, const task::Timing& timing) {
  return fmt::format("{:<9}  median {} (95 % interval {} to {}; {} calls, {} clock)",
                     who,
                     describe_us(timing.median_us),
                     describe_us(timing.median_low_us),
                     describe_us(timing.median_high_us),
                     timing.count,
                     timing.clock);
}

std::vector<std::string> timing_lines(const task::Result& result) {
  const auto* accepted = std::get_if<task::Accepted>(&result.verdict.outcome);
  if (accepted == nullptr) return {};
  std::vector<std::string> lines;
  if (accepted->timing) lines.push_back(timing_line("candidate", *accepted->timing));
  if (accepted->reference_timing) {
    lines.push_back(timing_line("reference", *accepted->reference_timing));
  }
  if (!lines.empty() && result.mode == task::Mode::interpreter) {
    lines.emplace_back("interpreter: no speed claim");
  }
  const task::Protocol protocol = result.manifest.policy.protocol;
  if (!lines.empty() && result.mode == task::Mode::gpu && protocol != task::Protocol::cold) {
    const bool by_mean = protocol == task::Protocol::kernelgym;
    lines.push_back(fmt::format("protocol {}{}",
                                json::name_of(protocol),
                                by_mean ? ": the speedup is the ratio of the means" : ""));
  }
  return lines;
}

std::string origin_words(task::KernelOrigin origin) {
  switch (origin) {
    case task::KernelOrigin::candidate_triton:
      return "own, Triton";
    case task::KernelOrigin::candidate_cuda:
      return "own, CUDA";
    case task::KernelOrigin::torch:
      return "torch";
    case task::KernelOrigin::library:
      return "library";
    case task::KernelOrigin::torch_compile:
      return "torch.compile";
    case task::KernelOrigin::unknown:
      return "unknown";
  }
  return "unknown";
}

std::string extent_text(const task::Extent& extent) {
  if (extent.z > 1) return fmt::format("{}x{}x{}", extent.x, extent.y, extent.z);
  if (extent.y > 1) return fmt::format("{}x{}", extent.x, extent.y);
  return std::to_string(extent.x);
}

/// Of one call, the longest first.
std::vector<std::string> profile_lines(const task::Profile& profile) {
  std::vector<std::string> lines;
  const auto share = task::share_of(profile);
  if (!share) return {"no complete records: " + one_line(profile.problem)};
  const double calls = std::max(1U, profile.calls);
  for (const task::KernelRecord& kernel : profile.kernels) {
    if (lines.size() == kMaxKernelLines) {
      lines.push_back(fmt::format("... and {} more", profile.kernels.size() - lines.size()));
      break;
    }
    lines.push_back(fmt::format("{:>5.1f} %  {:>8}  {:<13}  {}  ({} blocks of {}, {} registers)",
                                share->all_us > 0 ? 100 * kernel.total_us / share->all_us : 0.0,
                                describe_us(kernel.total_us / calls),
                                origin_words(kernel.origin),
                                one_line(kernel.name),
                                extent_text(kernel.grid),
                                extent_text(kernel.block),
                                kernel.registers));
  }
  return lines;
}

/// Of the first trial that launched any: later ones launch the same.
std::vector<std::string> kernel_lines(const task::Observations& observations) {
  if (observations.profile) return profile_lines(*observations.profile);
  std::vector<std::string> lines;
  for (const task::Trial& trial : observations.trials) {
    for (const task::KernelLaunches& kernel : trial.kernels) {
      std::string line =
          fmt::format("{}: {} launched {} in a call",
                      one_line(kernel.name),
                      kernel.own ? "the candidate's own," : "not the candidate's,",
                      kernel.count == 1 ? "once" : fmt::format("{} times", kernel.count));
      if (kernel.own && kernel.line > 0) line += fmt::format(" (line {})", kernel.line);
      lines.push_back(std::move(line));
    }
    if (!lines.empty()) return lines;
  }
  return lines;
}

std::vector<std::string> sandbox_lines(const task::Isolation& isolation) {
  std::vector<std::string> lines;
  for (const task::MissingIsolation& missing : isolation.missing) {
    lines.push_back(fmt::format("missing {}: {}", missing.feature, one_line(missing.why)));
  }
  return lines;
}

std::vector<std::string> stage_lines(const std::vector<task::Span>& timeline) {
  std::string line;
  for (const task::Span& span : timeline) {
    if (span.duration_ms < kMinStageMs) continue;
    if (!line.empty()) line += ", ";
    line += fmt::format("{} {}", span.name, describe_us(span.duration_ms * 1e3));
  }
  if (line.empty()) return {};
  return {line};
}

std::vector<std::string> tail_lines(const task::Captured& captured) {
  std::vector<std::string> lines;
  const std::string text = printable(captured.text);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  if (lines.size() <= kTailLines) return lines;
  const std::size_t left_out = lines.size() - kTailLines;
  lines.erase(lines.begin(), lines.end() - kTailLines);
  lines.insert(lines.begin(), fmt::format("... {} lines before", left_out));
  return lines;
}

}  // namespace

int exit_code_of(const task::Verdict& verdict) noexcept {
  if (task::is_accepted(verdict)) return kAccepted;
  const bool machine = verdict.fault == task::Fault::infra ||
                       std::holds_alternative<task::Undecided>(verdict.outcome);
  return machine ? kUnusable : kRejected;
}

std::string headline(const task::Result& result, const Style& style) {
  const task::Verdict& verdict = result.verdict;
  if (const auto* accepted = std::get_if<task::Accepted>(&verdict.outcome)) {
    return style.good(accepted_words(*accepted, result.mode));
  }
  const std::string what =
      std::visit([](const auto& outcome) { return words(outcome); }, verdict.outcome);
  if (exit_code_of(verdict) == kUnusable) return style.doubtful("NO VERDICT: " + what);
  if (verdict.fault == task::Fault::task) return style.doubtful("BAD PROBLEM: " + what);
  return style.bad("REJECTED: " + what);
}

std::string render_verdict(const task::Result& result,
                           const Style& style,
                           std::optional<std::size_t> reply_line) {
  const bool accepted = task::is_accepted(result.verdict);
  std::string page = headline(result, style) + "\n";
  if (!accepted) page += render_cause(result, style, reply_line);
  std::string rest = section("findings", finding_lines(result.verdict, style)) +
                     section("time", timing_lines(result)) +
                     section("kernels", kernel_lines(result.observations)) +
                     section("sandbox", sandbox_lines(result.isolation)) +
                     section("stages", stage_lines(result.timeline));
  if (!accepted) rest += section("stderr", tail_lines(result.candidate_stderr));
  return rest.empty() ? page : page + "\n" + rest;
}

}  // namespace drk::cli
