// SPDX-License-Identifier: Apache-2.0
// Compilers in toolboxes, what is kept of what they make, and guests that compile by asking.
#include "worker/builder.h"

#include "drk/base/error.h"
#include "drk/base/fd.h"

#include "worker/fixture.h"
#include "worker/pool.h"

#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <regex>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace drk::worker::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLong(60);

GuestPool& pool() {
  static GuestPool instance(options(), nullptr);
  return instance;
}

class BuilderTest : public WorkerTest {
 protected:
  void SetUp() override {
    WorkerTest::SetUp();
    dir_ = fs::temp_directory_path() / ("drk-builds-" + std::to_string(::getpid()));
    fs::remove_all(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  [[nodiscard]] BuilderOptions store() const {
    BuilderOptions options;
    options.store_dir = dir_;
    return options;
  }
  [[nodiscard]] std::size_t count(const std::string& extension) const {
    std::size_t found = 0;
    for (const auto& file : fs::directory_iterator(dir_)) {
      if (file.path().extension() == extension) ++found;
    }
    return found;
  }

  fs::path dir_;
};

guest::Build c_module(const std::string& source, std::vector<std::string> more = {}) {
  guest::Build build;
  build.tool = guest::Tool::c_module;
  build.arguments = {"a.c", "-shared", "-fPIC"};
  build.arguments.insert(build.arguments.end(), more.begin(), more.end());
  build.files = {{"a.c", source.size()}};
  return build;
}

Fd sealed(const std::string& content) {
  return make_sealed_memory("files", std::as_bytes(std::span(content)));
}

/// gcc runs its parts through this shell script: what a candidate's flags may bring about.
std::vector<std::string> wrapped(const std::string& script) {
  return {"-wrapper", "sh,-c," + script};
}

Product build_c(Builder& builder,
                const std::string& source,
                const std::vector<std::string>& more = {},
                std::chrono::nanoseconds limit = kLong) {
  return builder.build(c_module(source, more), sealed(source), Deadline(limit), {});
}

constexpr const char* kAnswer = "int answer(void) { return 42; }\n";

// --- the toolbox ---

/// What a script printed in a toolbox.
std::string run_in_toolbox(const std::string& script) {
  const std::unique_ptr<GuestProcess> toolbox = pool().toolboxes().open();
  guest::RunTools run;
  run.steps = {{{{{"/bin/sh", "-c", script + "\ntouch done\n"}, {}}}}};
  run.path = "/usr/bin:/bin";
  run.product = "done";
  const Fd none = make_sealed_memory("none", {});
  const int fd = none.get();
  GuestProcess::Outcome outcome = toolbox->ask(run, {&fd, 1}, AskOptions{});
  const auto* answer = std::get_if<GuestProcess::Answer>(&outcome);
  return answer == nullptr ? std::get<task::Failure>(outcome).what
                           : std::get<guest::ToolsRan>(answer->reply).log;
}

TEST_F(BuilderTest, AToolboxExecutesButReachesNothingElse) {
  const std::string log = run_in_toolbox(R"sh(
echo executes
for place in / /usr /etc /dev /proc/sys/kernel; do
  touch "$place/x" 2>/dev/null && echo "wrote to $place"
done
touch /tmp/x && echo writes to tmp
ls /proc | grep -c '^[0-9]' | sed 's/^/processes: /'
ls /dev | grep -i nvidia
ls /root 2>/dev/null
cat /proc/net/dev | tail -n +3 | grep -v ' lo:'
echo "user $(id -u)"
)sh");
  EXPECT_THAT(log, HasSubstr("executes\n"));
  EXPECT_THAT(log, HasSubstr("writes to tmp\n"));
  EXPECT_THAT(log, Not(HasSubstr("wrote to"))) << log;
  EXPECT_THAT(log, Not(HasSubstr("nvidia"))) << log;
  EXPECT_THAT(log, Not(HasSubstr("user 0"))) << log;
  // Its init, its core, the shell, and the three of the pipe: nobody else's.
  EXPECT_TRUE(std::regex_search(log, std::regex("processes: [4-8]\n"))) << log;
  const std::string python = options().python;
  const std::string sockets = run_in_toolbox(
      python + " -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM)'");
  EXPECT_THAT(sockets, HasSubstr("PermissionError")) << sockets;
}

TEST_F(BuilderTest, ACandidateStillMayNotExecute) {
  const task::Result result = evaluator().evaluate(
      make_torch_task(kReluReference, candidate_with("os.system('true'); return torch.relu(x)")));
  ASSERT_TRUE(result.observations.process) << text_of(result);
  EXPECT_THAT(text_of(result) + json::dump(json::to_json(*result.observations.process)),
              HasSubstr("execve"));
}

// --- the store ---

TEST_F(BuilderTest, KeepsWhatWasMadeForOthers) {
  Builder first(store(), pool().toolboxes());
  const Product made = build_c(first, kAnswer);
  ASSERT_EQ(made.built.exit_code, 0) << made.built.log;
  const Product again = build_c(first, kAnswer);
  Builder second(store(), pool().toolboxes());
  const Product other = build_c(second, kAnswer);
  EXPECT_EQ(first.counts().made, 1U);
  EXPECT_EQ(first.counts().found, 1U);
  EXPECT_EQ(second.counts().made, 0U);
  EXPECT_EQ(other.built.product_bytes, made.built.product_bytes);
  EXPECT_FALSE(::write(other.memory.get(), "x", 1) == 1) << "a product is sealed";
  const Product different = build_c(second, std::string(kAnswer) + "int more;\n");
  EXPECT_EQ(second.counts().made, 1U);
  const Product flags = build_c(second, kAnswer, {"-O2"});
  EXPECT_EQ(second.counts().made, 2U);
  EXPECT_EQ(count(".lock"), 0U);
  EXPECT_EQ(count(".new"), 0U);
}

TEST_F(BuilderTest, OfSeveralWhoWantTheSameOneMakesIt) {
  Builder builder(store(), pool().toolboxes());
  std::vector<std::jthread> callers;
  std::atomic<int> got = 0;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      const Product product = build_c(builder, kAnswer, wrapped("sleep 0.2; exec \"$0\" \"$@\""));
      if (product.built.exit_code == 0) ++got;
    });
  }
  callers.clear();
  EXPECT_EQ(got, 4);
  EXPECT_EQ(builder.counts().made, 1U);
}

TEST_F(BuilderTest, AKilledHolderHoldsNothing) {
  BuildStore mine(dir_, 1U << 20U);
  Pipe pipe = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = mine.lock("k", Deadline(kLong), {});
    (void)!::write(pipe.write.get(), "x", 1);
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(pipe.read.get(), &byte, 1), 1);
  EXPECT_FALSE(mine.lock("k", Deadline(std::chrono::milliseconds(100)), {}));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(mine.lock("k", Deadline(std::chrono::milliseconds(100)), {}));
}

TEST_F(BuilderTest, AWaiterForALockCanBeStopped) {
  const BuildStore mine(dir_, 1U << 20U);
  const auto held = mine.lock("k", Deadline(kLong), {});
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW((void)mine.lock("k", Deadline(kLong), source.get_token()), Error);
}

Product product_of(const std::string& content) {
  return {{0, content.size(), ""}, sealed(content)};
}

TEST_F(BuilderTest, AnEntryThatWasCutShortIsNone) {
  BuildStore mine(dir_, 1U << 20U);
  mine.keep("k", product_of("0123456789"));
  ASSERT_TRUE(mine.find("k"));
  fs::resize_file(dir_ / "k.product", fs::file_size(dir_ / "k.product") - 3);
  EXPECT_FALSE(mine.find("k"));
  EXPECT_FALSE(fs::exists(dir_ / "k.product"));
}

TEST_F(BuilderTest, WhatWasUsedTheLongestTimeAgoGoesButNotWhatIsLocked) {
  constexpr std::uint64_t kBound = 1U << 20U;
  BuildStore mine(dir_, kBound);
  const std::string content(64U << 10U, 'x');
  const auto lock = mine.lock("0", Deadline(kLong), {});
  for (int i = 0; i < 40; ++i) {
    mine.keep(std::to_string(i), product_of(content));
    if (i >= 1) {
      EXPECT_TRUE(mine.find("1")) << "used all the time, after entry " << i;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(dir_)) bytes += file.file_size();
  EXPECT_LE(bytes, kBound);
  EXPECT_TRUE(mine.find("39"));
  EXPECT_TRUE(fs::exists(dir_ / "0.product"));
  EXPECT_FALSE(mine.find("5"));
}

TEST_F(BuilderTest, WithoutAStoreItBuildsAllTheSame) {
  BuilderOptions none;
  none.store_dir = "/proc/no/such/folder";
  Builder builder(none, pool().toolboxes());
  EXPECT_EQ(build_c(builder, kAnswer).built.exit_code, 0);
  EXPECT_EQ(build_c(builder, kAnswer).built.exit_code, 0);
  EXPECT_EQ(builder.counts().made, 2U);
}

// --- what goes wrong ---

TEST_F(BuilderTest, CodeThatDoesNotCompileIsKeptAsThat) {
  Builder builder(store(), pool().toolboxes());
  const Product bad = build_c(builder, "int answer(void) { return fourty_two; }\n");
  EXPECT_EQ(bad.built.exit_code, 1);
  EXPECT_THAT(bad.built.log, HasSubstr("a.c:1:")) << bad.built.log;
  EXPECT_THAT(bad.built.log, HasSubstr("'fourty_two' undeclared"));
  EXPECT_FALSE(bad.memory);
  EXPECT_EQ(build_c(builder, "int answer(void) { return fourty_two; }\n").built.log, bad.built.log);
  EXPECT_EQ(builder.counts().made, 1U);
}

TEST_F(BuilderTest, AnEndlessCompilerEndsAtItsDeadline) {
  Builder builder(store(), pool().toolboxes());
  const std::int64_t begin_ns = now_ns();
  const Product endless =
      build_c(builder, kAnswer, wrapped("sleep 1000"), std::chrono::milliseconds(700));
  EXPECT_LT(static_cast<double>(now_ns() - begin_ns) * 1e-9, 5.0);
  EXPECT_EQ(endless.built.exit_code, 124) << endless.built.log;
  EXPECT_EQ(count(".product"), 0U);
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW(
      (void)builder.build(c_module(kAnswer), sealed(kAnswer), Deadline(kLong), source.get_token()),
      Error);
}

TEST_F(BuilderTest, TheQueueForAToolboxCostsNobodysTime) {
  BuilderOptions one = store();
  one.max_toolboxes = 1;
  Builder builder(one, pool().toolboxes());
  const auto wait_until = [&](std::size_t locks) {
    const Deadline deadline(kLong);
    while ((!fs::exists(dir_) || count(".lock") < locks) && !deadline.passed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // from the lock to the slot
  };
  std::thread slow([&] {
    const std::chrono::seconds limit(6);
    EXPECT_EQ(build_c(builder, kAnswer, wrapped("sleep 1000"), limit).built.exit_code, 124);
  });
  wait_until(1);
  const Product quick = build_c(builder, kAnswer, {}, std::chrono::seconds(3));
  slow.join();
  EXPECT_EQ(quick.built.exit_code, 0) << quick.built.log;
  EXPECT_GT(quick.queued_s, 3.0) << "longer than its limit";
}

TEST_F(BuilderTest, ACompilerThatDiesIsNotKept) {
  Builder builder(store(), pool().toolboxes());
  const Product crashed = build_c(builder, kAnswer, wrapped("kill -SEGV $$"));
  EXPECT_NE(crashed.built.exit_code, 0);
  const Product suicide = build_c(builder, kAnswer, wrapped("kill -9 -1"));
  EXPECT_NE(suicide.built.exit_code, 0);
  EXPECT_EQ(count(".product"), 0U);
  EXPECT_EQ(build_c(builder, kAnswer).built.exit_code, 0) << "the next is not harmed";
}

TEST_F(BuilderTest, AProductHasALimit) {
  Builder builder(store(), pool().toolboxes());
  const Product huge = build_c(builder, kAnswer, wrapped("truncate -s 300M drk-product.so"));
  EXPECT_EQ(huge.built.exit_code, 1);
  EXPECT_THAT(huge.built.log, HasSubstr("over the limit"));
  const Product none = build_c(builder, kAnswer, wrapped("true"));
  EXPECT_THAT(none.built.log, HasSubstr("no product"));
  const Product link =
      build_c(builder, kAnswer, wrapped("ln -sf /proc/self/environ drk-product.so"));
  EXPECT_THAT(link.built.log, HasSubstr("no product"));
  const Product flood = build_c(builder, kAnswer, wrapped("yes | head -c 30M >&2; exit 3"));
  EXPECT_THAT(flood.built.log, HasSubstr("bytes left out"));
  EXPECT_LT(flood.built.log.size(), 20'000U);
}

TEST_F(BuilderTest, RefusesNamesThatLeaveTheFolder) {
  Builder builder(store(), pool().toolboxes());
  for (const char* name : {"../a.c", "/tmp/a.c", "a/../../b", "", "a//b", "./a", "a/"}) {
    guest::Build build = c_module(kAnswer);
    build.files[0].name = name;
    try {
      (void)builder.build(build, sealed(kAnswer), Deadline(kLong), {});
      ADD_FAILURE() << "'" << name << "' was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << name;
    }
  }
  guest::Build twice = c_module(kAnswer);
  twice.files.push_back({"a.c", 0});
  EXPECT_THROW((void)builder.build(twice, sealed(kAnswer), Deadline(kLong), {}), Error);
  guest::Build lying = c_module(kAnswer);
  lying.files[0].bytes = 1 << 20;
  EXPECT_THROW((void)builder.build(lying, sealed(kAnswer), Deadline(kLong), {}), Error);
}

// --- guests that ask ---

std::string load_only(const std::string& at_load) {
  return candidate_with("return torch.relu(x)", at_load);
}

TEST_F(BuilderTest, TritonCompilesForADeviceThatIsNotThere) {
  const std::string candidate = load_only(R"(
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

def double(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) * 2, mask=offs < n)

source = ASTSource(fn=JITFunction(double), signature={"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
                   constexprs={"BLOCK": 128})
kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32))
assert kernel.asm["cubin"][:4] == b"\x7fELF", kernel.asm.keys()
)");
  Options mine = options();
  mine.build_dir = dir_;
  Evaluator evaluator(mine);
  for (int i = 0; i < 2; ++i) {
    const task::Result result = evaluator.evaluate(make_torch_task(kReluReference, candidate));
    EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
  }
  EXPECT_EQ(count(".product"), 1U);
}

TEST_F(BuilderTest, TritonTellsWhatPtxasSaid) {
  const task::Result result = evaluator().evaluate(make_torch_task(kReluReference, load_only(R"(
import tempfile
from triton.backends.nvidia import compiler
with tempfile.NamedTemporaryFile('w', suffix='.ptx', delete=False) as ptx:
    ptx.write('.version 8.0\n.target sm_90\n.address_size 64\n.entry f() { bogus.u32 r; }\n')
log = open('/tmp/log', 'w+')
try:
    compiler.subprocess.run([compiler.get_ptxas(90).path, '-v', '--gpu-name=sm_90', ptx.name, '-o', '/tmp/o'],
                            check=True, close_fds=False, stderr=log)
except compiler.subprocess.CalledProcessError as error:
    assert error.returncode == 255, error
else:
    raise AssertionError('it compiled')
assert 'bogus' in open('/tmp/log').read()
)")));
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
}

TEST_F(BuilderTest, TritonsHelpersAreCompiledOutside) {
  const task::Result result = evaluator().evaluate(make_torch_task(kReluReference, load_only(R"(
from triton.runtime.build import compile_module_from_src
module = compile_module_from_src('''
#include <Python.h>
static PyObject* answer(PyObject* self, PyObject* none) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, 0}, {0, 0, 0, 0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "helper", 0, -1, methods};
PyMODINIT_FUNC PyInit_helper(void) { return PyModule_Create(&definition); }
''', 'helper')
assert module.answer() == 42
)")));
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
}

// --- torch.utils.cpp_extension ---

/// A task with time for torch's headers on a slow machine.
task::Task extension_task(const std::string& candidate) {
  task::Task task = make_torch_task(kReluReference, candidate);
  task.limits.load_s = 240;
  task.limits.total_s = 300;
  return task;
}

TEST_F(BuilderTest, ACppExtensionIsBuiltAndRuns) {
  const std::string candidate = R"(
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = '''
torch::Tensor relu(torch::Tensor x) {
  TORCH_CHECK(x.dtype() == torch::kFloat32, "float32 is wanted, not ", x.dtype());
  torch::Tensor y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] > 0 ? from[i] : 0;
  return y;
}
bool is_slim() {
#ifdef AT_PER_OPERATOR_HEADERS
  return true;
#else
  return false;
#endif
}
torch::Tensor leaf() { return torch::ones({2, 3}, torch::dtype(torch::kFloat64).requires_grad(true)); }
'''
relu = load_inline(name='relu_extension', cpp_sources=[source], functions=['relu', 'is_slim', 'leaf'])
assert relu.is_slim()
assert relu.leaf().requires_grad and relu.leaf().is_leaf and relu.leaf().dtype == torch.float64

class ModelNew(nn.Module):
    def forward(self, x):
        return relu.relu(x.contiguous())
)";
  Options mine = options();
  mine.build_dir = dir_;
  Evaluator evaluator(mine);
  const task::Result result = evaluator.evaluate(extension_task(candidate));
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
  const std::int64_t begin_ns = now_ns();
  const task::Result again = evaluator.evaluate(extension_task(candidate));
  EXPECT_EQ(kind_of(again), "accepted") << text_of(again);
  RecordProperty("from_the_store_s",
                 std::to_string(static_cast<double>(now_ns() - begin_ns) * 1e-9));
  EXPECT_EQ(count(".product"), 1U);
}

TEST_F(BuilderTest, WhatTheSlimHeadersLackIsCompiledWithTorchsOwn) {
  const task::Result result = evaluator().evaluate(extension_task(load_only(R"(
from torch.utils.cpp_extension import load_inline
source = '''
double answer() { return torch::tensor({2.5})[0].item<double>(); }  // not in the slim headers
#ifdef AT_PER_OPERATOR_HEADERS
#define IS_SLIM true
#else
#define IS_SLIM false
#endif
bool is_slim() { return IS_SLIM; }
'''
module = load_inline(name='stock_extension', cpp_sources=source, functions=['answer', 'is_slim'])
assert module.answer() == 2.5 and not module.is_slim()
)")));
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
}

TEST_F(BuilderTest, AnExtensionThatDoesNotCompileSaysWhy) {
  const task::Result result = evaluator().evaluate(extension_task(load_only(R"(
from torch.utils.cpp_extension import load_inline
load_inline(name='bad', cpp_sources='torch::Tensor f(torch::Tensor x) { return x + nonsense; }',
            functions=['f'], extra_cflags=['-O1'])
)")));
  EXPECT_EQ(kind_of(result), "compile_failed") << text_of(result);
  EXPECT_THAT(text_of(result), HasSubstr("Error building extension 'bad'"));
  EXPECT_THAT(text_of(result), HasSubstr("'nonsense' was not declared"));
}

TEST_F(BuilderTest, ACudaExtensionIsBuiltWithoutADeviceAndThenNeedsOne) {
  if (pool().zygote()->hello().toolchain.cuda_home.empty()) {
    GTEST_SKIP() << "no nvcc beside the Python packages, on PATH or in /usr/local/cuda";
  }
  const task::Result result = evaluator().evaluate(extension_task(load_only(R"(
from torch.utils.cpp_extension import load_inline
cuda = '''
__global__ void relu_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
torch::Tensor relu_cuda(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
'''
from torch.utils import cpp_extension
try:
    load_inline(name='relu_cuda_extension', cpp_sources='torch::Tensor relu_cuda(torch::Tensor x);',
                cuda_sources=cuda, functions=['relu_cuda'], extra_cuda_cflags=['-O3'])
except RuntimeError as error:
    assert 'was built, but needs a GPU' in str(error), error
    folder = cpp_extension._get_build_directory('relu_cuda_extension', False)
    module = cpp_extension._import_module_from_library('relu_cuda_extension', folder, True)
    assert callable(module.relu_cuda)
    raise
)")));
  EXPECT_EQ(kind_of(result), "undecided") << text_of(result);
  EXPECT_THAT(text_of(result), HasSubstr("was built, but needs a GPU")) << text_of(result);
}

TEST_F(BuilderTest, ACandidateCannotNameFilesElsewhere) {
  const task::Result result = evaluator().evaluate(make_torch_task(kReluReference, load_only(R"(
from triton import knobs
build = knobs.build.impl.__globals__['_build']
for name in ['../x', '/etc/passwd', 'a/../b', '']:
    try:
        build('c_module', ['-v'], {name: b'x'})
    except ValueError:
        continue
    raise AssertionError(name)
)")));
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
}

TEST_F(BuilderTest, ABuildCountsAsTheCandidatesTime) {
  task::Task task = make_torch_task(kReluReference, load_only(R"(
from triton import knobs
build = knobs.build.impl.__globals__['_build']
build('c_module', ['a.c', '-wrapper', 'sh,-c,sleep 1000'], {'a.c': b'int a;'})
)"));
  task.limits.load_s = 3;
  const task::Result result = evaluator().evaluate(task);
  EXPECT_EQ(kind_of(result), "timed_out") << text_of(result);
  EXPECT_THAT(text_of(result), HasSubstr("while its code was compiled"));
}

}  // namespace
}  // namespace drk::worker::test
