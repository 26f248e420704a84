// Code for each element type: inside, `data_t` is the type.
#pragma once

#include "oar/extension/paddle/tensor.h"

#define OAR_PADDLE_CASE(code, cpp, ...) \
  case ::paddle::DataType::code: {      \
    using data_t = cpp;                 \
    __VA_ARGS__();                      \
    break;                              \
  }
#define OAR_PADDLE_FLOATS(...)                 \
  OAR_PADDLE_CASE(FLOAT32, float, __VA_ARGS__) \
  OAR_PADDLE_CASE(FLOAT64, double, __VA_ARGS__)
#define OAR_PADDLE_HALVES(...)                             \
  OAR_PADDLE_CASE(FLOAT16, ::paddle::float16, __VA_ARGS__) \
  OAR_PADDLE_CASE(BFLOAT16, ::paddle::bfloat16, __VA_ARGS__)
#define OAR_PADDLE_INTEGERS(...)               \
  OAR_PADDLE_CASE(UINT8, uint8_t, __VA_ARGS__) \
  OAR_PADDLE_CASE(INT8, int8_t, __VA_ARGS__)   \
  OAR_PADDLE_CASE(INT16, int16_t, __VA_ARGS__) \
  OAR_PADDLE_CASE(INT32, int32_t, __VA_ARGS__) \
  OAR_PADDLE_CASE(INT64, int64_t, __VA_ARGS__)
#define OAR_PADDLE_COMPLEX(...)                                     \
  OAR_PADDLE_CASE(COMPLEX64, ::paddle::complex<float>, __VA_ARGS__) \
  OAR_PADDLE_CASE(COMPLEX128, ::paddle::complex<double>, __VA_ARGS__)

#define OAR_PADDLE_SWITCH(type, name, cases)                                              \
  [&] {                                                                                   \
    const ::paddle::DataType oar_type = (type);                                           \
    switch (oar_type) {                                                                   \
      cases default : PD_THROW(name, ": there is no case for elements of type ",          \
                               ::oar::name_of(static_cast<::oar::DType>(oar_type)), "."); \
    }                                                                                     \
  }()

#define PD_DISPATCH_FLOATING_TYPES(type, name, ...) \
  OAR_PADDLE_SWITCH(type, name, OAR_PADDLE_FLOATS(__VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_HALF_TYPES(type, name, ...) \
  OAR_PADDLE_SWITCH(type, name, OAR_PADDLE_FLOATS(__VA_ARGS__) OAR_PADDLE_HALVES(__VA_ARGS__))
#define PD_DISPATCH_INTEGRAL_TYPES(type, name, ...) \
  OAR_PADDLE_SWITCH(type, name, OAR_PADDLE_INTEGERS(__VA_ARGS__))
#define PD_DISPATCH_COMPLEX_TYPES(type, name, ...) \
  OAR_PADDLE_SWITCH(type, name, OAR_PADDLE_COMPLEX(__VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_INTEGRAL_TYPES(type, name, ...) \
  OAR_PADDLE_SWITCH(type, name, OAR_PADDLE_FLOATS(__VA_ARGS__) OAR_PADDLE_INTEGERS(__VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_COMPLEX_TYPES(type, name, ...) \
  OAR_PADDLE_SWITCH(type, name, OAR_PADDLE_FLOATS(__VA_ARGS__) OAR_PADDLE_COMPLEX(__VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_INTEGRAL_AND_COMPLEX_TYPES(type, name, ...)        \
  OAR_PADDLE_SWITCH(type, name,                                                     \
                    OAR_PADDLE_FLOATS(__VA_ARGS__) OAR_PADDLE_INTEGERS(__VA_ARGS__) \
                        OAR_PADDLE_COMPLEX(__VA_ARGS__))
