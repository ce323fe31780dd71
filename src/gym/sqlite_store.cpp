// SPDX-License-Identifier: Apache-2.0
// One folder: its lock, the thread that writes, the readers beside it.
#include "drk/gym/sqlite_store.h"

#include "drk/base/error.h"
#include "drk/base/fd.h"

#include "gym/reader.h"
#include "gym/writer.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <system_error>
#include <utility>

namespace drk::gym {

namespace {

/// Makes the folder and keeps every other process out of it while the descriptor lives.
Fd lock_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error(ErrorCode::unavailable,
                "queue: cannot make folder " + folder + ": " + error.message());
  }
  const std::string path = folder + "/lock";
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) throw_errno("queue: cannot write in folder " + folder);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) throw_errno("queue: cannot lock folder " + folder);
  throw Error(ErrorCode::unavailable,
              "queue: folder " + folder +
                  " is in use by another process; stop it, or give this "
                  "one a folder of its own");
}

std::string file_in(const std::string& folder) {
  return folder + "/queue.sqlite";
}

}  // namespace

class SqliteStore::Impl {
 public:
  explicit Impl(SqliteOptions given)
      : options(std::move(given)),
        lock(lock_folder(options.folder)),
        writer(options, file_in(options.folder)),
        reader(file_in(options.folder), options.generation) {}

  const SqliteOptions options;
  const Fd lock;
  Writer writer;
  Reader reader;
};

SqliteStore::SqliteStore(SqliteOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

SqliteStore::~SqliteStore() = default;

void SqliteStore::submit(SubmitRequest request, Done<std::vector<Admitted>> done) {
  impl_->writer.ask(std::move(done),
                    [request = std::move(request)](Operations& operations) mutable {
                      return operations.submit(std::move(request));
                    });
}

void SqliteStore::lease(const std::string& worker,
                        double lease_s,
                        Done<std::optional<Lease>> done) {
  impl_->writer.ask(std::move(done), [worker, lease_s](Operations& operations) {
    return operations.lease(worker, lease_s);
  });
}

void SqliteStore::renew(std::vector<LeaseId> leases, double lease_s, Done<std::vector<bool>> done) {
  impl_->writer.ask(std::move(done), [leases = std::move(leases), lease_s](Operations& operations) {
    return operations.renew(leases, lease_s);
  });
}

void SqliteStore::finish(const LeaseId& lease, Ending ending, Done<bool> done) {
  impl_->writer.ask(std::move(done), [lease, ending = std::move(ending)](Operations& operations) {
    return operations.finish(lease, ending);
  });
}

void SqliteStore::give_back(const LeaseId& lease, GiveBack how, Done<bool> done) {
  impl_->writer.ask(std::move(done), [lease, how = std::move(how)](Operations& operations) {
    return operations.give_back(lease, how);
  });
}

void SqliteStore::cancel(const std::string& id, Done<CancelOutcome> done) {
  impl_->writer.ask(std::move(done),
                    [id](Operations& operations) { return operations.cancel(id); });
}

void SqliteStore::clear_code(const std::string& code, Done<bool> done) {
  impl_->writer.ask(std::move(done),
                    [code](Operations& operations) { return operations.clear_code(code); });
}

std::optional<TaskView> SqliteStore::find(const std::string& id) {
  if (std::optional<TaskView> live = impl_->writer.board().find(id)) return live;
  return impl_->reader.find(id);
}

std::optional<Place> SqliteStore::place(const std::string& id) {
  return impl_->writer.board().place(id);
}

std::vector<TaskView> SqliteStore::list(const ListFilter& filter) {
  return impl_->reader.list(filter);
}

QueueCounts SqliteStore::counts() {
  return impl_->writer.board().counts(impl_->writer.now_ms());
}

std::vector<CodeHistory> SqliteStore::troubled_codes() {
  return impl_->reader.codes();
}

std::optional<Batch> SqliteStore::batch(const std::string& id) {
  return impl_->reader.batch(id);
}

void SqliteStore::listen(std::function<void(const TaskView&)> changed) {
  impl_->writer.listen(std::move(changed));
}

std::optional<StoredResult> SqliteStore::result(const std::string& task_id) {
  return impl_->reader.result(task_id);
}

std::optional<StoredResult> SqliteStore::find_content(const std::string& content) {
  return impl_->reader.reusable_result(content);
}

}  // namespace drk::gym
