// SPDX-License-Identifier: Apache-2.0
// The table of fields as a JSON schema (2020-12).
#include "drk/task/wire.h"

#include "wire_fields.h"

#include <boost/json/array.hpp>

#include <cmath>
#include <cstdint>

namespace drk::task {

namespace {

const char* type_name(FieldType type) {
  switch (type) {
    case FieldType::text:
    case FieldType::code:
      return "string";
    case FieldType::integer:
      return "integer";
    case FieldType::number:
      return "number";
    case FieldType::boolean:
      return "boolean";
    case FieldType::list:
      return "array";
    case FieldType::object:
      break;
  }
  return "object";
}

/// What `low` and `high` limit: a number's value, a text's length, a list's.
struct LimitNames {
  const char* low;
  const char* high;
};

LimitNames limit_names(const Field& field) {
  switch (field.type) {
    case FieldType::text:
    case FieldType::code:
      return {"minLength", "maxLength"};
    case FieldType::list:
      return {"minItems", "maxItems"};
    default:
      return {field.above_low ? "exclusiveMinimum" : "minimum", "maximum"};
  }
}

void add_limit(json::Object& schema, const char* name, double limit) {
  if (std::isfinite(limit)) schema[name] = static_cast<std::int64_t>(limit);
}

json::Object schema_of_field(const Field& field) {
  json::Object schema;
  const char* type = type_name(field.type);
  schema["type"] =
      field.nullable ? json::Value(boost::json::array{type, "null"}) : json::Value(type);
  schema["description"] = field.description;
  if (!field.default_json.empty()) schema["default"] = json::parse(field.default_json);
  const LimitNames names = limit_names(field);
  add_limit(schema, names.low, field.low);
  add_limit(schema, names.high, field.high);
  if (!field.choices.empty()) {
    boost::json::array choices(field.choices.begin(), field.choices.end());
    if (field.nullable) choices.emplace_back(nullptr);
    schema["enum"] = std::move(choices);
  }
  if (field.member != nullptr) {
    json::Object members;
    members[field.member->name] = schema_of_field(*field.member);
    schema["properties"] = std::move(members);
  }
  return schema;
}

boost::json::array names_with(Need need) {
  boost::json::array names;
  for (const Field& field : wire_fields()) {
    if (field.need == need) names.emplace_back(field.name);
  }
  return names;
}

/// Fields that kernel_simple does without are required of every other body.
void add_workflow_rule(json::Object& schema) {
  json::Object is_simple = {
      {"properties", {{"workflow", {{"const", json::name_of(Workflow::kernel_simple)}}}}},
      {"required", boost::json::array{"workflow"}}};
  schema["if"] = std::move(is_simple);
  schema["else"] = json::Object{{"required", names_with(Need::by_kernelbench)}};
}

}  // namespace

json::Object evaluate_schema() {
  json::Object properties;
  for (const Field& field : wire_fields()) properties[field.name] = schema_of_field(field);
  json::Object schema;
  schema["type"] = "object";
  schema["description"] = "One candidate to judge.";
  schema["properties"] = std::move(properties);
  schema["required"] = names_with(Need::required);
  add_workflow_rule(schema);
  schema["additionalProperties"] = true;
  return schema;
}

}  // namespace drk::task
