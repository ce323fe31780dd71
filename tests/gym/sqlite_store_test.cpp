// SPDX-License-Identifier: Apache-2.0
// The queue in a SQLite file: what must hold of every queue, and what a file adds: locks, foreign
// files, full disks, kill -9.
#include "drk/gym/sqlite_store.h"

#include "drk/base/fd.h"

#include "base/error_matchers.h"
#include "gym/queue_conformance.h"
#include "gym/sqlite.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drk::gym {
namespace {

/// A folder for one test, gone with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "drk-queue-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw_errno("mkdtemp");
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

SqliteOptions options_of(const std::string& folder, const QueueSetup& setup = {}) {
  return {.folder = folder,
          .max_pending = setup.max_pending,
          .max_attempts = setup.max_attempts,
          .generation = setup.generation,
          .result_of_end = setup.result_of_end,
          .sweep_interval_s = 0.005,
          .unix_ms = setup.unix_ms};
}

class SqliteUnderTest final : public StoreUnderTest {
 public:
  explicit SqliteUnderTest(const QueueSetup& setup) { reopen(setup); }
  Queue& queue() override { return *store_; }
  ResultStore& results() override { return *store_; }
  void reopen(const QueueSetup& setup) override {
    store_.reset();
    store_ = std::make_unique<SqliteStore>(options_of(folder_.path(), setup));
  }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<SqliteStore> store_;
};

struct Sqlite {
  static std::unique_ptr<StoreUnderTest> make(const QueueSetup& setup) {
    return std::make_unique<SqliteUnderTest>(setup);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, QueueConformance, Sqlite);

Admission submit(SqliteStore& store, const Submission& submission) {
  return Desk::ask<std::vector<Admitted>>([&](auto done) {
           store.submit(SubmitRequest{{submission}, {}}, std::move(done));
         })
      .at(0)
      .admission;
}

TEST(SqliteStore, MakesItsFolder) {
  const TemporaryFolder folder;
  SqliteStore store(options_of(folder.path() + "/not/there"));
  EXPECT_EQ(submit(store, task("a")), Admission::created);
}

TEST(SqliteStore, HasItsFolderForItself) {
  const TemporaryFolder folder;
  const auto open = [&] { SqliteStore store(options_of(folder.path())); };
  {
    const SqliteStore store(options_of(folder.path()));
    EXPECT_TRUE(throws_error(ErrorCode::unavailable, folder.path(), open));
  }
  EXPECT_NO_THROW(open());
}

TEST(SqliteStore, NamesAFolderThatItCannotMake) {
  const TemporaryFolder folder;
  write_file(folder.path() + "/file", "");
  EXPECT_TRUE(throws_error(ErrorCode::unavailable, folder.path() + "/file/below", [&] {
    const SqliteStore store(options_of(folder.path() + "/file/below"));
  }));
}

TEST(SqliteStore, RefusesFilesThatAreNotOurs) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/queue.sqlite";
  const auto open = [&] { const SqliteStore store(options_of(folder.path())); };

  write_file(path, std::string(5000, 'x'));
  EXPECT_TRUE(throws_error(ErrorCode::corrupt, "", open));
  EXPECT_EQ(file_size_bytes(Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)).get()), 5000U);
  std::filesystem::remove(path);
  sqlite::Database(path, sqlite::Access::write).exec("CREATE TABLE other(a)");
  EXPECT_TRUE(throws_error(ErrorCode::corrupt, path, open));
  std::filesystem::remove(path);
  open();
  sqlite::Database(path, sqlite::Access::write).exec("PRAGMA user_version=99");
  EXPECT_TRUE(throws_error(ErrorCode::corrupt, "99", open));
}

TEST(SqliteStore, CompletesWhatWasAskedForBeforeItGoes) {
  const TemporaryFolder folder;
  int done = 0;
  {
    SqliteStore store(options_of(folder.path()));
    for (int i = 0; i < 700; ++i) {  // more than one group
      store.submit({{task(std::to_string(i))}, {}}, [&](const auto&) { ++done; });
    }
  }
  EXPECT_EQ(done, 700);
  EXPECT_EQ(SqliteStore(options_of(folder.path())).counts().pending(), 700U);
}

TEST(SqliteStore, OrderAndFairnessDoNotDependOnGroups) {
  // The same calls, one by one and all at once, lease in the same order.
  const auto order_of = [](bool wait) {
    const TemporaryFolder folder;
    SqliteStore store(options_of(folder.path()));
    const Submission first = task("0", Priority::low, "a");
    std::vector<std::string> order;
    const auto lease = [&] {
      store.lease("worker", 60, [&](const std::variant<std::optional<Lease>, Error>& done) {
        order.push_back(std::get<0>(done)->id.task_id);
      });
    };
    for (int i = 0; i < 90; ++i) {
      const auto priority = static_cast<Priority>(i % 3);
      const Submission submission =
          task(std::to_string(i), priority, std::string(1, static_cast<char>('a' + i * i % 5)));
      store.submit({{submission}, {}}, {});
      if (i % 3 == 2) lease();
      if (wait) {
        EXPECT_EQ(submit(store, first), Admission::attached);
      }
    }
    for (int i = 0; i < 60; ++i) lease();
    EXPECT_EQ(submit(store, first), Admission::attached);  // by now all are done
    return order;
  };
  EXPECT_EQ(order_of(true), order_of(false));
}

/// No file can grow beyond a size while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit old_{};
  void (*handler_)(int);
};

TEST(SqliteStore, AFullDiskChangesNothing) {
  Desk desk(&Sqlite::make);
  for (const char* client : {"x", "y"}) {
    for (const char* id : {"1", "2", "3"}) {
      desk.submit(task(client + std::string(id), Priority::normal, client));
    }
  }
  const Lease lease = desk.take();
  EXPECT_EQ(lease.id.task_id, "x1");
  const std::vector<Desk::Heard> heard = desk.heard();
  {
    const FileSizeLimit limit(rlim_t{1} << 20U);
    Submission large = task("large");
    large.request.assign(std::size_t{4} << 20U, 'x');
    // In one group with others, most likely: they all come to nothing, or are done before.
    std::atomic<int> refused = 0;
    desk.queue().submit({{large}, {}}, [&](const std::variant<std::vector<Admitted>, Error>& done) {
      const Error* error = std::get_if<Error>(&done);
      if (error != nullptr && error->code() == ErrorCode::unavailable) ++refused;
    });
    EXPECT_TRUE(
        throws_error(ErrorCode::unavailable, "nothing was changed", [&] { desk.submit(large); }));
    EXPECT_EQ(refused, 1);
  }
  EXPECT_EQ(desk.heard(), heard);
  EXPECT_FALSE(desk.queue().find("large"));
  EXPECT_EQ(desk.queue().counts().pending(), 5U);
  EXPECT_EQ(desk.submit(task("after")), Admission::created);
  EXPECT_EQ(desk.renew({lease.id}), std::vector{true});
  EXPECT_EQ(desk.take_all(), (Ids{"y1", "after", "x2", "y2", "x3", "y3"}));
}

// ---- kill -9

/// What a process was told before it was killed.
struct Acknowledged {
  std::set<std::string> submitted;
  std::map<std::string, std::string> finished;  ///< id -> result
  std::map<std::string, int> finals_heard;
};

Acknowledged read_log(const std::string& path) {
  Acknowledged log;
  std::istringstream lines(read_file(path));
  std::string kind;
  std::string id;
  std::string result;
  while (lines >> kind >> id >> result) {
    if (kind == "submitted") log.submitted.insert(id);
    if (kind == "finished") log.finished[id] = result;
    if (kind == "final") ++log.finals_heard[id];
  }
  return log;
}

/// Submits, leases and finishes until it is killed, and appends what it is told to the log.
[[noreturn]] void work_until_killed(const std::string& folder, const std::string& log, int round) {
  const Fd fd(::open(log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  const auto note = [&](const std::string& line) {
    // One call a line: a kill cannot tear it.
    if (::write(fd.get(), line.data(), line.size()) < 0) ::_exit(1);
  };
  SqliteOptions options = options_of(folder);
  options.max_pending = 1'000'000;
  options.max_attempts = 1'000;
  SqliteStore store(options);
  store.listen([&](const TaskView& heard) {
    if (is_final(heard.state)) note("final " + heard.id + " -\n");
  });
  std::atomic<int> waiting = 0;
  const std::function<void()> work = [&] {
    store.lease("worker", 60, [&](const std::variant<std::optional<Lease>, Error>& answer) {
      const std::optional<Lease>& lease = std::get<0>(answer);
      if (!lease) {
        --waiting;
        return;
      }
      const std::string id = lease->id.task_id;
      const std::string result = "fence" + std::to_string(lease->id.fence);
      store.finish(lease->id, ending(result), [&, id, result](std::variant<bool, Error> done) {
        if (std::get<bool>(done)) note("finished " + id + " " + result + "\n");
        work();
      });
    });
  };
  for (int i = 0;; ++i) {
    const std::string id = std::to_string(round) + "-" + std::to_string(i);
    Submission submission = task(id);
    submission.request.assign(3'000, 'x');
    Desk::ask<std::vector<Admitted>>([&](auto done) {
      store.submit({{submission}, {}},
                   [&note, id, done](std::variant<std::vector<Admitted>, Error> answer) {
                     if (answer.index() == 0) note("submitted " + id + " -\n");
                     done(std::move(answer));
                   });
    });
    if (i % 2 == 0 && waiting < 8) {
      ++waiting;
      work();
    }
  }
}

TEST(SqliteStore, SurvivesKill9) {
  const TemporaryFolder folder;
  const std::string store_folder = folder.path() + "/store";
  const std::string log_path = folder.path() + "/log";
  write_file(log_path, "");
  std::mt19937 random(std::random_device{}());
  constexpr int kRounds = 30;
  for (int round = 0; round < kRounds; ++round) {
    const pid_t child = ::fork();  // no other thread is alive here
    if (child == 0) work_until_killed(store_folder, log_path, round);
    ASSERT_GT(child, 0);
    // Most are killed at work, some while they open the file.
    const std::uintmax_t before = std::filesystem::file_size(log_path);
    while (round % 5 != 0 && std::filesystem::file_size(log_path) == before) {
      ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "the child ended by itself";
      ::usleep(1'000);
    }
    ::usleep(static_cast<useconds_t>(random() % 80'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;

    const Acknowledged log = read_log(log_path);
    SqliteOptions options = options_of(store_folder);
    options.max_attempts = 1'000;
    SqliteStore store(options);
    for (const std::string& id : log.submitted) ASSERT_TRUE(store.find(id)) << id;
    for (const auto& [id, result] : log.finished) {
      ASSERT_EQ(store.find(id)->state, State::completed) << id;
      ASSERT_EQ(store.result(id)->result, result) << id;
    }
    for (const auto& [id, times] : log.finals_heard) {
      ASSERT_EQ(times, 1) << id;
      ASSERT_TRUE(is_final(store.find(id)->state)) << id;
    }
    const QueueCounts counts = store.counts();
    ASSERT_EQ(counts.processing, 0U);
    ASSERT_GE(counts.stored, log.submitted.size());
  }
  const Acknowledged log = read_log(log_path);
  EXPECT_GE(log.submitted.size(), 24U);
  EXPECT_GT(log.finished.size(), 0U);
  sqlite::Database file(store_folder + "/queue.sqlite", sqlite::Access::write);
  EXPECT_EQ(
      file.integer("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
  EXPECT_EQ(file.integer("SELECT count(*) FROM requests"),
            file.integer("SELECT count(*) FROM tasks WHERE state = 'pending'"));
}

}  // namespace
}  // namespace drk::gym
