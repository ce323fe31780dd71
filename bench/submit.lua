-- SPDX-License-Identifier: Apache-2.0
-- For wrk: every request submits another task of about 6 KB.
local thread_count = 0

function setup(thread)
  thread:set("thread_id", thread_count)
  thread_count = thread_count + 1
end

local sent = 0
local filler = string.rep("# a line of a candidate that is as long as candidates are\\n", 100)
local reference = "class Model: pass"

function init(args)
  run = args[1] or "run"
end

function request()
  sent = sent + 1
  local body = string.format(
    '{"task_id":"%s-%d-%d","reference_code":"%s","kernel_code":"class ModelNew: pass\\n# %d\\n%s"}',
    run, thread_id, sent, reference, sent, filler)
  return wrk.format("POST", "/evaluate?async=1", {["Content-Type"] = "application/json"}, body)
end

function response(status)
  if status ~= 202 then
    refused = (refused or 0) + 1
  end
end
