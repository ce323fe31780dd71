// SPDX-License-Identifier: Apache-2.0
// The DLPack 0.x exchange structures (dmlc/dlpack, dlpack.h), as torch's capsules hold them.
#pragma once

#include <cstdint>

namespace drk::guest::dlpack {

inline constexpr const char* kName = "dltensor";
inline constexpr const char* kUsedName = "used_dltensor";
inline constexpr std::int32_t kCpu = 1;
inline constexpr std::int32_t kCuda = 2;

struct Device {
  std::int32_t type;
  std::int32_t id;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< In elements; null means dense.
  std::uint64_t byte_offset;
};

struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);
};

}  // namespace drk::guest::dlpack
