// SPDX-License-Identifier: Apache-2.0
// The one place where JSON meets the types of this module.
#include "drk/base/error.h"
#include "drk/base/hash.h"
#include "drk/task/result.h"

namespace drk::task {

json::Value to_json(const Task& task) {
  return json::to_json(task);
}
json::Value to_json(const Result& result) {
  return json::to_json(result);
}
json::Value to_json(const Manifest& manifest) {
  return json::to_json(manifest);
}

Task task_from_json(const json::Value& value) {
  return json::from_json<Task>(value, "task");
}

Result result_from_json(const json::Value& value) {
  return json::from_json<Result>(value, "result");
}

Manifest manifest_from_json(const json::Value& value) {
  return json::from_json<Manifest>(value, "manifest");
}

namespace {

void check_hash(const Source& source, const std::string& name) {
  const std::string actual = sha256_hex(source.text);
  if (actual == source.sha256) return;
  throw Error(ErrorCode::corrupt,
              "manifest: the text of " + name + " has SHA-256 " + actual + ", but " +
                  source.sha256 + " is written beside it; the file was edited");
}

}  // namespace

Task task_of(const Manifest& manifest) {
  if (manifest.format != Manifest{}.format) {
    throw Error(ErrorCode::invalid_argument,
                "manifest: format " + std::to_string(manifest.format) +
                    " is not known here; repeat it with the version of drk that wrote it");
  }
  check_hash(manifest.reference, "the reference");
  check_hash(manifest.candidate, "the candidate");
  Task task;
  task.reference_code = manifest.reference.text;
  task.candidate_code = manifest.candidate.text;
  static_cast<TaskOptions&>(task) = static_cast<const TaskOptions&>(manifest);
  return task;
}

}  // namespace drk::task
