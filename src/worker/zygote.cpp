// SPDX-License-Identifier: Apache-2.0
// Starting the zygote and asking it for guests.
#include "worker/zygote.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/version.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

namespace drk::worker {

namespace {

constexpr std::chrono::seconds kStartLimit(120);
constexpr std::chrono::seconds kReplyLimit(20);

/// Nothing of the user's environment reaches Python.
std::vector<std::string> environment(const gpu::Device* device) {
  std::vector<std::string> variables = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "LANG=C.UTF-8",
      "HOME=/tmp",
      "USER=guest",
      "LOGNAME=guest",
      "TMPDIR=/tmp",
      "PYTHONUNBUFFERED=1",
      "PYTHONDONTWRITEBYTECODE=1",
      "TRITON_CACHE_DIR=/tmp/triton",
      "TORCHINDUCTOR_CACHE_DIR=/tmp/inductor",
      // A pool of threads that exists at the fork is dead in the child.
      "OPENBLAS_NUM_THREADS=1",
      "OMP_NUM_THREADS=1",
      "MKL_NUM_THREADS=1",
      std::string("DRK_VERSION=") + kVersion,
  };
  if (device == nullptr) {
    variables.insert(variables.end(), {"CUDA_VISIBLE_DEVICES=", "TRITON_INTERPRET=1"});
    return variables;
  }
  variables.push_back("CUDA_VISIBLE_DEVICES=" + device->uuid);
  variables.push_back(
      fmt::format("DRK_CUDA_ARCH={}.{}", device->compute_major, device->compute_minor));
  variables.emplace_back("CUDA_CACHE_PATH=/tmp/cuda");
  variables.emplace_back("TORCHINDUCTOR_COMPILE_THREADS=1");  // its pool would have to be forked
  return variables;
}

/// What a process must open to use this device and no other.
std::vector<std::string> device_files(const gpu::Device& device) {
  std::vector<std::string> files;
  for (const std::string& file : {std::string("/dev/nvidiactl"),
                                  std::string("/dev/nvidia-uvm"),
                                  std::string("/dev/nvidia-uvm-tools"),
                                  fmt::format("/dev/nvidia{}", device.minor)}) {
    if (::access(file.c_str(), F_OK) == 0) files.push_back(file);
  }
  return files;
}

bool readable_within(int fd, std::chrono::milliseconds limit) {
  const Deadline deadline(limit);
  pollfd readable = {fd, POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&readable, 1, static_cast<int>(deadline.left().count()));
    if (ready > 0) return true;
    if (ready == 0) return false;
  }
}

}  // namespace

Zygote::Zygote(const std::string& python,
               const std::string& guest_dir,
               const gpu::Device* device,
               const std::string& cuda_home) {
  const std::int64_t begin_ns = now_ns();
  log_ = Fd(::memfd_create("zygote-stderr", MFD_CLOEXEC));
  auto [ours, theirs] = make_socket_pair();
  socket_ = std::move(ours);
  ProgramOptions program;
  program.arguments = {
      python, "-I", guest_dir + "/host.py", "3", guest_dir + "/_drk_guest.abi3.so"};
  program.environment = environment(device);
  if (!cuda_home.empty()) program.environment.push_back("DRK_CUDA_HOME=" + cuda_home);
  program.stdout_fd = log_.get();
  program.stderr_fd = log_.get();
  program.extra_fd = theirs.get();
  process_ = ChildProcess::start(program);
  theirs.reset();
  if (!readable_within(socket_.get(), kStartLimit)) {
    throw Error(ErrorCode::unavailable, "worker: " + python + " was not ready within 120 s");
  }
  const std::optional<Message> message = receive_message(socket_.get());
  if (!message) {
    throw Error(ErrorCode::unavailable,
                "worker: " + python + " could not start as a zygote: " + printed());
  }
  hello_ = json::from_json<guest::Hello>(json::parse(message->text), "hello");
  const guest::ZygoteRequest configure = guest::Configure{
      sandbox::make_plan(std::move(hello_.readable),
                         device == nullptr ? std::vector<std::string>{} : device_files(*device))};
  (void)exchange(json::dump(json::to_json(configure)), {});
  start_s_ = static_cast<double>(now_ns() - begin_ns) * 1e-9;
}

GuestChannels Zygote::spawn(const sandbox::Cell& cell) {
  GuestChannels channels;
  auto [control, guest_control] = make_socket_pair();
  auto [status, guest_status] = make_socket_pair();
  Pipe standard_output = make_pipe();
  Pipe standard_error = make_pipe();
  const std::array<int, 4> fds = {guest_control.get(),
                                  guest_status.get(),
                                  standard_output.write.get(),
                                  standard_error.write.get()};
  Message message =
      exchange(json::dump(json::to_json(guest::ZygoteRequest(guest::Spawn{cell}))), fds);
  const auto reply = json::from_json<guest::ZygoteReply>(json::parse(message.text), "zygote");
  if (const auto* failed = std::get_if<guest::SpawnFailed>(&reply)) {
    throw Error(ErrorCode::unavailable, failed->what);
  }
  DRK_CHECK(message.fds.size() == 1);
  channels.control = std::move(control);
  channels.status = std::move(status);
  channels.standard_output = std::move(standard_output.read);
  channels.standard_error = std::move(standard_error.read);
  channels.pidfd = std::move(message.fds[0]);
  return channels;
}

Message Zygote::exchange(std::string_view request, std::span<const int> fds) {
  const std::lock_guard lock(mutex_);
  send_message(socket_.get(), request, fds);
  std::optional<Message> reply;
  if (readable_within(socket_.get(), kReplyLimit)) reply = receive_message(socket_.get());
  if (!reply) throw Error(ErrorCode::unavailable, "worker: the zygote is gone: " + printed());
  return std::move(*reply);
}

bool Zygote::is_alive() const noexcept {
  pollfd hung_up = {socket_.get(), 0, 0};
  return ::poll(&hung_up, 1, 0) == 0;
}

std::string Zygote::printed() const {
  std::array<char, 8192> tail = {};
  const std::size_t size = file_size_bytes(log_.get());
  const std::size_t from = size > tail.size() ? size - tail.size() : 0;
  const ssize_t n = ::pread(log_.get(), tail.data(), tail.size(), static_cast<off_t>(from));
  return n > 0 ? std::string(tail.data(), static_cast<std::size_t>(n)) : "it printed nothing";
}

}  // namespace drk::worker
