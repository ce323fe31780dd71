// SPDX-License-Identifier: Apache-2.0
// The OpenAPI 3.1 document, from the table of routes and the described answers.
#include "drk/base/json_schema.h"
#include "drk/version.h"

#include "gym/api.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace drk::gym {

namespace {

json::Object reference_to(const std::string& component) {
  json::Object schema;
  schema["$ref"] = "#/components/schemas/" + component;
  return schema;
}

json::Object json_content(json::Object schema) {
  json::Object media;
  media["schema"] = std::move(schema);
  json::Object content;
  content["application/json"] = std::move(media);
  return content;
}

/// A member that need not be there may be null as well: see with_nulls.
void allow_nulls(json::Object& schema) {
  const json::Value* properties = schema.if_contains("properties");
  if (properties == nullptr) return;
  const json::Value* required = schema.if_contains("required");
  json::Object changed;
  for (const auto& property : properties->get_object()) {
    const bool is_required =
        required != nullptr &&
        std::any_of(required->get_array().begin(),
                    required->get_array().end(),
                    [&](const json::Value& name) { return name.as_string() == property.key(); });
    if (is_required) {
      changed[property.key()] = property.value();
      continue;
    }
    json::Object null;
    null["type"] = "null";
    json::Object either;
    either["anyOf"] = boost::json::array{property.value(), std::move(null)};
    changed[property.key()] = std::move(either);
  }
  schema["properties"] = std::move(changed);
}

template <class T>
json::Object answer_schema() {
  json::Object schema = json::schema_of<T>();
  allow_nulls(schema);
  return schema;
}

json::Object batch_request() {
  json::Object schema;
  schema["type"] = "object";
  json::Object id;
  id["type"] = "string";
  id["description"] = "Posting it again with the same tasks joins the batch.";
  json::Object tasks;
  tasks["type"] = "array";
  tasks["minItems"] = 1;
  tasks["maxItems"] = 4096;
  tasks["items"] = reference_to("EvaluateRequest");
  schema["properties"] = json::Object{{"batch_id", id}, {"tasks", tasks}};
  schema["required"] = boost::json::array{"batch_id", "tasks"};
  return schema;
}

json::Object workflow_request() {
  json::Object schema;
  schema["type"] = "object";
  json::Object payload;
  payload["type"] = "object";
  payload["description"] = "The fields of EvaluateRequest.";
  json::Object text;
  text["type"] = "string";
  json::Object flag;
  flag["type"] = "boolean";
  json::Object any;
  schema["properties"] = json::Object{{"workflow", text},
                                      {"payload", payload},
                                      {"task_id", text},
                                      {"force_refresh", flag},
                                      {"resources", any}};
  schema["required"] = boost::json::array{"payload"};
  return schema;
}

json::Object workers() {
  json::Object schema;
  schema["type"] = "object";
  schema["additionalProperties"] = json::schema_of<WorkerView>();
  return schema;
}

json::Object components() {
  json::Object schemas;
  schemas["EvaluateRequest"] = task::evaluate_schema();
  schemas["BatchRequest"] = batch_request();
  schemas["WorkflowRequest"] = workflow_request();
  schemas["Root"] = answer_schema<RootAnswer>();
  schemas["Result"] = answer_schema<ResultAnswer>();
  schemas["Batch"] = answer_schema<BatchAnswer>();
  schemas["Workflow"] = answer_schema<WorkflowAnswer>();
  schemas["Status"] = answer_schema<StatusAnswer>();
  json::Object tasks = answer_schema<TasksAnswer>();
  tasks["properties"].as_object()["tasks"].as_object()["items"] = reference_to("Status");
  schemas["Tasks"] = std::move(tasks);
  schemas["Cancelled"] = answer_schema<CancelAnswer>();
  schemas["Validation"] = answer_schema<ValidateAnswer>();
  schemas["Health"] = answer_schema<HealthAnswer>();
  schemas["Metrics"] = answer_schema<MetricsAnswer>();
  schemas["Queue"] = answer_schema<QueueAnswer>();
  schemas["Workers"] = workers();
  schemas["Node"] = answer_schema<NodeAnswer>();
  schemas["Worker"] = answer_schema<WorkerAnswer>();
  schemas["Codes"] = answer_schema<CodesAnswer>();
  json::Object retries = answer_schema<RetryAnswer>();
  for (const char* name : {"waiting", "dead_letter"}) {
    retries["properties"].as_object()[name].as_object()["items"] = reference_to("Status");
  }
  schemas["Retries"] = std::move(retries);
  schemas["WorkerHealth"] = answer_schema<WorkerHealthAnswer>();
  schemas["Cleared"] = answer_schema<ClearedAnswer>();
  schemas["Detail"] = answer_schema<DetailAnswer>();
  schemas["Invalid"] = answer_schema<InvalidAnswer>();
  return schemas;
}

const char* meaning_of(std::uint32_t status) {
  static const std::map<std::uint32_t, const char*> kMeanings = {
      {200, "The answer"},
      {202, "Accepted; it goes on without this connection"},
      {400, "The request breaks a rule: `message` names the field"},
      {401, "A bearer token is needed"},
      {404, "There is no such thing (or it is not final yet)"},
      {409, "There is another one of that name"},
      {429, "The queue is full: nothing was accepted; see Retry-After"},
      {503, "No verdict, for a reason of this side; see Retry-After"},
  };
  return kMeanings.at(status);
}

json::Object response(const Route& route, std::uint32_t status) {
  json::Object response;
  response["description"] = meaning_of(status);
  if (status == 400) {
    response["content"] = json_content(reference_to("Invalid"));
  } else if (status >= 401) {
    response["content"] = json_content(reference_to("Detail"));
  } else if (route.answer_schema != nullptr) {
    const bool is_batch = std::string_view(route.answer_schema) == "Batch";
    const std::string schema = status == 202 && !is_batch ? "Status" : route.answer_schema;
    response["content"] = json_content(reference_to(schema));
  }
  return response;
}

boost::json::array parameters(const Route& route) {
  boost::json::array list;
  const auto add = [&](const char* where,
                       const std::string& name,
                       const char* type,
                       const char* what,
                       bool is_required) {
    json::Object schema;
    schema["type"] = type;
    json::Object parameter;
    parameter["name"] = name;
    parameter["in"] = where;
    parameter["required"] = is_required;
    if (*what != '\0') parameter["description"] = what;
    parameter["schema"] = std::move(schema);
    list.emplace_back(std::move(parameter));
  };
  const std::string path = route.path;
  if (const std::size_t brace = path.find('{'); brace != std::string::npos) {
    add("path", path.substr(brace + 1, path.size() - brace - 2), "string", "", true);
  }
  for (const Parameter& one : route.parameters) {
    add("query", one.name, one.type, one.what, one.is_required);
  }
  return list;
}

json::Object operation(const Route& route) {
  json::Object operation;
  operation["summary"] = route.summary;
  boost::json::array list = parameters(route);
  if (!list.empty()) operation["parameters"] = std::move(list);
  if (route.request_schema != nullptr) {
    json::Object body;
    body["required"] = true;
    body["content"] = json_content(reference_to(route.request_schema));
    operation["requestBody"] = std::move(body);
  }
  json::Object responses;
  for (const std::uint32_t status : route.statuses) {
    responses[std::to_string(status)] = response(route, status);
  }
  if (!route.is_open) responses["401"] = response(route, 401);
  operation["responses"] = std::move(responses);
  if (route.is_open) operation["security"] = boost::json::array();
  return operation;
}

}  // namespace

json::Object openapi_document(const std::vector<Route>& routes) {
  json::Object paths;
  for (const Route& route : routes) {
    std::string method = route.method;
    std::transform(method.begin(), method.end(), method.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    if (!paths.contains(route.path)) paths[route.path] = json::Object();
    paths[route.path].as_object()[method] = operation(route);
  }
  json::Object scheme;
  scheme["type"] = "http";
  scheme["scheme"] = "bearer";
  json::Object bearer;
  bearer["bearer"] = boost::json::array();
  json::Object document;
  document["openapi"] = "3.1.0";
  document["info"] = json::Object{
      {"title", "drkernel"}, {"version", kVersion}, {"description", RootAnswer().description}};
  document["paths"] = std::move(paths);
  document["components"] = json::Object{{"schemas", components()},
                                        {"securitySchemes", json::Object{{"bearer", scheme}}}};
  // An empty requirement beside it: without tokens nobody needs one.
  document["security"] = boost::json::array{bearer, json::Object()};
  return document;
}

}  // namespace drk::gym
