// SPDX-License-Identifier: Apache-2.0
// Commands for ptxas, the C compiler, and the compilers of torch's extensions.
#include "worker/build_recipe.h"

#include "drk/base/error.h"
#include "drk/base/fd.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

namespace drk::worker {

namespace {

using Arguments = std::vector<std::string>;

constexpr const char* kProduct = "drk-product.so";
constexpr const char* kSlim = "drk-slim";
constexpr std::int32_t kNoTool = 127;  // as a shell says it

guest::Built missing(std::string what) {
  return {kNoTool, 0, std::move(what)};
}

void append(Arguments& to, std::span<const std::string> more) {
  to.insert(to.end(), more.begin(), more.end());
}

void check_files(const guest::Build& build) {
  std::set<std::string_view> names;
  std::uint64_t bytes = 0;
  for (const guest::BuildFile& file : build.files) {
    bytes += std::min(file.bytes, guest::kMaxBuildBytes + 1);
    if (!guest::is_plain_name(file.name) || !names.insert(file.name).second) {
      throw Error(ErrorCode::corrupt, "it named a file of a build '" + file.name + "'");
    }
  }
  if (build.files.size() > guest::kMaxBuildFiles || bytes > guest::kMaxBuildBytes) {
    throw Error(ErrorCode::corrupt, "it asked for a build of too many files or bytes");
  }
}

std::variant<Recipe, guest::Built> ptxas_recipe(const guest::Build& build,
                                                const guest::Toolchain& toolchain) {
  if (build.arguments.empty()) throw Error(ErrorCode::corrupt, "it asked for no ptxas");
  const bool is_blackwell = build.arguments[0] == "ptxas-blackwell";
  const std::string& ptxas = is_blackwell ? toolchain.ptxas_blackwell : toolchain.ptxas;
  if (ptxas.empty()) return missing("needs " + build.arguments[0] + ": Triton's wheel has none\n");
  Recipe recipe;
  recipe.tools = {ptxas};
  Arguments command = {ptxas};
  append(command, std::span(build.arguments).subspan(1));
  append(command, Arguments{"-o", kProduct});
  recipe.run.steps = {{{{std::move(command), {}}}}};
  return recipe;
}

std::variant<Recipe, guest::Built> c_module_recipe(const guest::Build& build,
                                                   const guest::Toolchain& toolchain) {
  if (toolchain.cc.empty()) return missing("needs a C compiler: install gcc\n");
  Recipe recipe;
  recipe.tools = {toolchain.cc};
  Arguments command = {toolchain.cc};
  append(command, build.arguments);
  append(command, Arguments{"-o", kProduct});
  recipe.run.steps = {{{{std::move(command), {}}}}};
  return recipe;
}

/// The parts of an extension's arguments: see guest::Tool.
struct ExtensionParts {
  Arguments sources, cxx, cuda, link;
};

ExtensionParts parts_of(const Arguments& arguments) {
  ExtensionParts parts;
  Arguments* part = nullptr;
  for (const std::string& argument : arguments) {
    if (argument == ":sources") {
      part = &parts.sources;
    } else if (argument == ":cxx") {
      part = &parts.cxx;
    } else if (argument == ":cuda") {
      part = &parts.cuda;
    } else if (argument == ":link") {
      part = &parts.link;
    } else if (part == nullptr) {
      throw Error(ErrorCode::corrupt, "it asked for an extension by '" + argument + "'");
    } else {
      part->push_back(argument);
    }
  }
  return parts;
}

bool is_cuda(const std::string& source) {
  return source.ends_with(".cu") || source.ends_with(".cuh");
}

/// `compiler`: the command up to its flags.
guest::ToolCommand compile(const Arguments& compiler,
                           const Arguments& flags,
                           const std::string& source,
                           const std::string& object,
                           bool with_slim) {
  const Arguments what = {"-c", source, "-o", object};
  Arguments stock = compiler;
  append(stock, flags);
  append(stock, what);
  if (!with_slim) return {std::move(stock), {}};
  // Before the flags: folders of -I come before those of -isystem, where torch's headers are.
  Arguments slim = compiler;
  slim.push_back(std::string("-I") + kSlim);
  append(slim, flags);
  append(slim, what);
  return {std::move(slim), std::move(stock)};
}

std::variant<Recipe, guest::Built> extension_recipe(const guest::Build& build,
                                                    const guest::Toolchain& toolchain,
                                                    bool with_slim) {
  const ExtensionParts parts = parts_of(build.arguments);
  const std::string nvcc = toolchain.cuda_home + "/bin/nvcc";
  if (toolchain.cxx.empty()) return missing("needs a C++ compiler: install g++\n");
  Recipe recipe;
  recipe.tools = {toolchain.cxx};
  const bool has_cuda = std::any_of(parts.sources.begin(), parts.sources.end(), is_cuda);
  if (has_cuda) {
    if (toolchain.cuda_home.empty()) {
      return missing(
          "needs nvcc: there is none beside the Python packages, on PATH or in /usr/local/cuda; "
          "install a CUDA toolkit or the packages of python/requirements.lock\n");
    }
    recipe.tools.push_back(nvcc);
  }
  recipe.with_slim = with_slim;
  const Arguments cuda_compiler =
      with_slim ? Arguments{"/bin/sh", fmt::format("{}/nvcc.sh", kSlim), nvcc} : Arguments{nvcc};
  guest::ToolStep compiling;
  Arguments link = {toolchain.cxx};
  for (const std::string& source : parts.sources) {
    const std::string object = fmt::format("drk-object-{}.o", compiling.commands.size());
    link.push_back(object);
    compiling.commands.push_back(
        is_cuda(source) ? compile(cuda_compiler, parts.cuda, source, object, with_slim)
                        : compile({toolchain.cxx}, parts.cxx, source, object, with_slim));
  }
  append(link, parts.link);
  append(link, Arguments{"-o", kProduct});
  recipe.run.steps = {std::move(compiling), {{{std::move(link), {}}}}};
  return recipe;
}

}  // namespace

SlimHeaders load_slim_headers(const std::string& dir) {
  namespace fs = std::filesystem;
  SlimHeaders slim;
  if (!fs::is_directory(dir)) return slim;
  std::vector<fs::path> paths;
  for (const auto& file : fs::recursive_directory_iterator(dir)) {
    if (file.is_regular_file()) paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    const std::string content = read_file(path);
    slim.files.push_back({(kSlim / path.lexically_relative(dir)).string(), content.size()});
    slim.content += content;
  }
  return slim;
}

std::variant<Recipe, guest::Built> make_recipe(const guest::Build& build,
                                               const guest::Toolchain& toolchain,
                                               const SlimHeaders& slim) {
  check_files(build);
  const auto make = [&]() -> std::variant<Recipe, guest::Built> {
    switch (build.tool) {
      case guest::Tool::ptxas:
        return ptxas_recipe(build, toolchain);
      case guest::Tool::c_module:
        return c_module_recipe(build, toolchain);
      case guest::Tool::extension:
        return extension_recipe(build, toolchain, !slim.files.empty());
    }
    throw Error(ErrorCode::corrupt, "it asked for a tool that there is not");
  };
  std::variant<Recipe, guest::Built> made = make();
  if (auto* recipe = std::get_if<Recipe>(&made)) {
    recipe->run.files = build.files;
    if (recipe->with_slim) {
      recipe->run.files.insert(recipe->run.files.end(), slim.files.begin(), slim.files.end());
    }
    recipe->run.path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
    if (!toolchain.cuda_home.empty())
      recipe->run.path = toolchain.cuda_home + "/bin:" + recipe->run.path;
    recipe->run.product = kProduct;
    recipe->run.max_product_bytes = guest::kMaxBuildBytes;
  }
  return made;
}

}  // namespace drk::worker
