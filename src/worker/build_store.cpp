// SPDX-License-Identifier: Apache-2.0
// Entries, locks, eviction.
#include "worker/build_store.h"

#include "drk/base/error.h"
#include "drk/base/hash.h"
#include "drk/base/json.h"
#include "drk/base/random.h"

#include <boost/describe.hpp>

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace drk::worker {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPoll(20);
constexpr std::chrono::hours kLeftover(1);  // no build takes that long
constexpr const char* kEntry = ".product";
constexpr const char* kLock = ".lock";
constexpr const char* kPrivate = ".new";

/// The first line of an entry; the product follows.
struct EntryHead {
  guest::Built built;
  std::string product_sha256;
};
BOOST_DESCRIBE_STRUCT(EntryHead, (), (built, product_sha256))

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Throws Error{corrupt or invalid_argument} for what was not written as a whole.
Product parse_entry(std::string_view entry) {
  const std::size_t end = entry.find('\n');
  if (end == std::string_view::npos) throw Error(ErrorCode::corrupt, "an entry without a head");
  auto head = json::from_json<EntryHead>(json::parse(entry.substr(0, end)), "entry");
  const std::string_view product = entry.substr(end + 1);
  if (product.size() != head.built.product_bytes || sha256_hex(product) != head.product_sha256) {
    throw Error(ErrorCode::corrupt, "an entry that was cut short");
  }
  Fd memory;
  if (head.built.exit_code == 0) {
    memory = make_sealed_memory("product", std::as_bytes(std::span(product)));
  }
  return {std::move(head.built), std::move(memory)};
}

struct Kept {
  fs::file_time_type used;
  std::uint64_t bytes = 0;
  std::string key;
};

}  // namespace

BuildStore::BuildStore(std::string dir, std::uint64_t max_bytes)
    : dir_(std::move(dir)), max_bytes_(max_bytes) {
  if (dir_.empty()) return;
  std::error_code error;  // of no matter: without the folder nothing is kept
  fs::create_directories(dir_, error);
  fs::permissions(dir_, fs::perms::owner_all, error);
}

std::optional<Product> BuildStore::find(const std::string& key) const {
  if (dir_.empty()) return std::nullopt;
  const std::string path = dir_ + "/" + key + kEntry;
  try {
    Product product = parse_entry(read_file(path));
    (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
    return product;
  } catch (const Error& error) {
    // As good as absent. What is broken must go, or it would be built anew each time.
    if (error.code() != ErrorCode::not_found) (void)::unlink(path.c_str());
    return std::nullopt;
  }
}

void BuildStore::keep(const std::string& key, const Product& product) {
  if (dir_.empty()) return;
  const Mapping mapping = Mapping::shared(product.memory.get(), product.built.product_bytes, false);
  const std::string_view content = text_of(mapping.bytes());
  std::string entry = json::dump(json::to_json(EntryHead{product.built, sha256_hex(content)}));
  entry += '\n';
  entry += content;
  const std::string path = dir_ + "/" + make_id("entry") + kPrivate;
  try {
    write_file(path, entry);
    if (::rename(path.c_str(), (dir_ + "/" + key + kEntry).c_str()) != 0) throw_errno("rename");
  } catch (const Error&) {  // a full disk: the product is as good without being kept
    (void)::unlink(path.c_str());
    return;
  }
  const std::lock_guard lock(mutex_);
  unseen_bytes_ += entry.size();
  if (has_looked_ && unseen_bytes_ < max_bytes_ / 32) return;
  has_looked_ = true;
  unseen_bytes_ = 0;
  make_room();
}

BuildStore::Lock::~Lock() {
  // While it is still held, so that no other's is removed.
  if (file_) (void)::unlink(path_.c_str());
}

BuildStore::Attempt BuildStore::try_lock(const std::string& key, std::optional<Lock>& lock) const {
  const std::string path = dir_ + "/" + key + kLock;
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return Attempt::impossible;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return Attempt::held_by_other;
  // The holder before may have removed the file between our opening and our locking it.
  struct stat ours = {}, there = {};
  if (::fstat(file.get(), &ours) != 0 || ::stat(path.c_str(), &there) != 0 ||
      ours.st_ino != there.st_ino) {
    return Attempt::held_by_other;
  }
  lock.emplace(std::move(file), path);
  return Attempt::taken;
}

std::optional<BuildStore::Lock> BuildStore::lock(const std::string& key,
                                                 const Deadline& deadline,
                                                 const std::stop_token& stop) const {
  std::optional<Lock> lock;
  if (dir_.empty()) return Lock();
  for (;;) {
    switch (try_lock(key, lock)) {
      case Attempt::taken:
        return lock;
      case Attempt::impossible:
        return Lock();  // built twice at worst
      case Attempt::held_by_other:
        break;
    }
    if (stop.stop_requested()) {
      throw Error(ErrorCode::timed_out, "worker: stopped while another built the same");
    }
    if (deadline.passed()) return std::nullopt;
    std::this_thread::sleep_for(std::min(kPoll, deadline.left()));
  }
}

void BuildStore::make_room() const {
  std::vector<Kept> entries;
  std::uint64_t total_bytes = 0;
  std::error_code error;  // files of a shared folder come and go meanwhile
  for (fs::directory_iterator file(dir_, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code gone;
    const fs::path& path = file->path();
    const fs::file_time_type used = fs::last_write_time(path, gone);
    const std::uint64_t bytes = fs::file_size(path, gone);
    if (gone) continue;
    if (path.extension() == kEntry) {
      entries.push_back({used, bytes, path.stem().string()});
      total_bytes += bytes;
    } else if (fs::file_time_type::clock::now() - used > kLeftover) {
      std::optional<Lock> lock;  // removes its file at the end of this scope
      if (path.extension() == kLock) (void)try_lock(path.stem().string(), lock);
      if (path.extension() == kPrivate) fs::remove(path, gone);
    }
  }
  std::sort(
      entries.begin(), entries.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
  for (const Kept& entry : entries) {
    if (total_bytes <= max_bytes_ / 8 * 7) return;
    std::optional<Lock> lock;
    if (try_lock(entry.key, lock) != Attempt::taken) continue;
    if (fs::remove(dir_ + "/" + entry.key + kEntry, error)) total_bytes -= entry.bytes;
  }
}

}  // namespace drk::worker
