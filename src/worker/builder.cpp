// SPDX-License-Identifier: Apache-2.0
// Keys, toolboxes, outcomes.
#include "worker/builder.h"

#include "drk/base/error.h"
#include "drk/base/hash.h"
#include "drk/base/json.h"

#include <boost/describe.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <sys/stat.h>
#include <thread>
#include <utility>

namespace drk::worker {

namespace {

constexpr std::int32_t kStopped = 124;  // as timeout(1) says it
constexpr std::int32_t kKilled = 128 + 9;
constexpr std::uint64_t kToolboxMemoryBytes = std::uint64_t{8} << 30;
constexpr std::uint64_t kToolboxTmpBytes = std::uint64_t{1} << 30;

/// All that makes a product what it is. Described, so that no two of them are one text.
struct KeyParts {
  guest::Tool tool = guest::Tool::ptxas;
  std::vector<std::string> tools;
  std::string torch;
  guest::RunTools run;
  std::string files_sha256;
};
BOOST_DESCRIBE_STRUCT(KeyParts, (), (tool, tools, torch, run, files_sha256))

/// A new version of a tool is a new file.
std::string identity_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return path;
  return fmt::format(
      "{} {} {}.{:09}", path, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

std::string key_of(const guest::Build& build,
                   const Recipe& recipe,
                   const std::string& torch,
                   const Fd& files) {
  KeyParts parts = {build.tool, {}, torch, recipe.run, {}};
  for (const std::string& tool : recipe.tools) parts.tools.push_back(identity_of(tool));
  const std::size_t size = files ? file_size_bytes(files.get()) : 0;
  const Mapping mapping = Mapping::shared(files.get(), size, false);
  parts.files_sha256 = sha256_hex({reinterpret_cast<const char*>(mapping.data()), size});
  return sha256_hex(json::dump(json::to_json(parts)));
}

/// A compiler's "no" holds for ever, but not one that a signal or a want of memory or of room gave,
/// and the drivers of compilers report those of their parts by an ordinary exit code and a text.
bool is_final(const guest::ToolsRan& ran) {
  if (ran.exit_code == 0) return true;
  if (ran.exit_code > 128 && ran.exit_code < 255) return false;  // killed, or its part was
  constexpr std::array kPassing = {"signal",
                                   "No space left on device",
                                   "annot allocate memory",
                                   "emory exhausted",
                                   "ut of memory",
                                   "Resource temporarily unavailable",
                                   "Too many open files"};
  return std::none_of(kPassing.begin(), kPassing.end(), [&](const char* text) {
    return ran.log.find(text) != std::string::npos;
  });
}

Product stopped(double limit_s) {
  return {{kStopped, 0, fmt::format("the compiler was stopped after {:.1f} s\n", limit_s)}, Fd()};
}

Product broken(const std::string& why) {
  return {{kKilled, 0, why + "\n"}, Fd()};
}

}  // namespace

sandbox::Limits toolbox_limits() noexcept {
  sandbox::Limits limits;
  limits.memory_bytes = kToolboxMemoryBytes;
  limits.tmp_bytes = kToolboxTmpBytes;
  limits.processes = 256;
  return limits;
}

Builder::Builder(BuilderOptions options, Toolboxes toolboxes)
    : options_(std::move(options)),
      toolboxes_(std::move(toolboxes)),
      slim_(load_slim_headers(options_.slim_dir)),
      store_(options_.store_dir, options_.max_store_bytes),
      free_slots_(options_.max_toolboxes != 0 ? options_.max_toolboxes
                                              : std::max(1U, std::thread::hardware_concurrency())) {
}

Product Builder::build(const guest::Build& build,
                       const Fd& files,
                       const Deadline& deadline,
                       const std::stop_token& stop) {
  std::uint64_t bytes = 0;
  for (const guest::BuildFile& file : build.files) bytes += file.bytes;
  if (bytes != (files ? file_size_bytes(files.get()) : 0)) {
    throw Error(ErrorCode::corrupt, "the files of a build and their memory differ in size");
  }
  const guest::Hello hello = toolboxes_.hello();
  std::variant<Recipe, guest::Built> made = make_recipe(build, hello.toolchain, slim_);
  if (auto* missing = std::get_if<guest::Built>(&made)) return {std::move(*missing), Fd()};
  const auto& recipe = std::get<Recipe>(made);
  const Fd more = recipe.with_slim ? with_slim_headers(files) : Fd();
  const Fd& all_files = more ? more : files;
  const std::string key = key_of(build, recipe, hello.versions.torch, all_files);
  const auto find = [&]() -> std::optional<Product> {
    std::optional<Product> kept = store_.find(key);
    if (kept) note(&Counts::found);
    return kept;
  };
  if (std::optional<Product> kept = find()) return std::move(*kept);
  const std::int64_t begin_ns = now_ns();
  const std::optional<BuildStore::Lock> lock = store_.lock(key, deadline, stop);
  if (!lock) return stopped(static_cast<double>(now_ns() - begin_ns) * 1e-9);
  // Who had the lock may have made it.
  if (std::optional<Product> kept = find()) return std::move(*kept);
  Made result = make(recipe, all_files, deadline, stop);
  if (result.is_final) store_.keep(key, result.product);
  return std::move(result.product);
}

Builder::Made Builder::make(const Recipe& recipe,
                            const Fd& files,
                            const Deadline& deadline,
                            const std::stop_token& stop) {
  if (deadline.passed()) return {stopped(0)};
  const std::chrono::milliseconds limit = deadline.left();
  const auto elapsed_s = [begin_ns = now_ns()] {
    return static_cast<double>(now_ns() - begin_ns) * 1e-9;
  };
  take_slot(stop);
  const double queued_s = elapsed_s();
  const auto give_back = [](Builder* builder) {
    const std::lock_guard lock(builder->mutex_);
    ++builder->free_slots_;
    builder->slot_freed_.notify_one();
  };
  const std::unique_ptr<Builder, decltype(give_back)> slot(this, give_back);
  const std::unique_ptr<GuestProcess> toolbox = toolboxes_.open();
  AskOptions options;
  options.limit = limit;
  options.max_block_bytes = recipe.run.max_product_bytes;
  options.stop = stop;
  const Fd none = files ? Fd() : make_sealed_memory("files", {});
  const int fd = files ? files.get() : none.get();
  GuestProcess::Outcome outcome = toolbox->ask(recipe.run, {&fd, 1}, options);
  note(&Counts::made);
  if (const auto* failure = std::get_if<task::Failure>(&outcome)) {
    // A candidate's flags may have made the compiler do anything to its cell.
    Made made = {failure->kind == task::FailureKind::timed_out
                     ? stopped(elapsed_s() - queued_s)
                     : broken("the compiler did not come to an end: " + failure->what)};
    made.product.queued_s = queued_s;
    return made;
  }
  Made made = take_product(std::move(std::get<GuestProcess::Answer>(outcome)));
  made.product.queued_s = queued_s;
  return made;
}

Fd Builder::with_slim_headers(const Fd& files) const {
  const std::size_t size = files ? file_size_bytes(files.get()) : 0;
  const Mapping from = Mapping::shared(files.get(), size, false);
  Fd memory = make_shared_memory("files", size + slim_.content.size());
  {
    const Mapping to = Mapping::shared(memory.get(), size + slim_.content.size(), true);
    if (size != 0) std::memcpy(to.data(), from.data(), size);
    std::memcpy(to.data() + size, slim_.content.data(), slim_.content.size());
  }
  DRK_CHECK(seal_against_writes(memory.get()));
  return memory;
}

Builder::Made Builder::take_product(GuestProcess::Answer answer) {
  const auto& ran = std::get<guest::ToolsRan>(answer.reply);
  Made made = {{{ran.exit_code, 0, ran.log}, Fd()}, is_final(ran)};
  if (ran.exit_code != 0) return made;
  const bool is_whole = answer.memory &&
                        file_size_bytes(answer.memory.get()) == ran.product_bytes &&
                        seal_against_writes(answer.memory.get());
  if (!is_whole) return {broken("the toolbox gave no product")};
  made.product.built.product_bytes = ran.product_bytes;
  made.product.memory = std::move(answer.memory);
  return made;
}

void Builder::note(std::uint64_t Counts::*count) {
  const std::lock_guard lock(mutex_);
  ++(counts_.*count);
}

void Builder::take_slot(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!slot_freed_.wait(lock, stop, [&] { return free_slots_ > 0; })) {
    throw Error(ErrorCode::timed_out, "worker: stopped before a compiler could run");
  }
  --free_slots_;
}

Builder::Counts Builder::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace drk::worker
