// Attention, as the standard and its extensions have it.
#pragma once

#include "oar/interop/onnx/call.h"

namespace oar::onnx {

// [batch, steps, heads * size] as [batch, heads, steps, size], and back.
Tensor split_heads(const Tensor& x, int64_t heads);
Tensor join_heads(const Tensor& x);

// 0, 1, … as float32.
Tensor counted(Dim count);

struct AttentionCall {
  Tensor query, key, value;  // [batch, heads, steps, size]; fewer heads of key and value are shared
  Tensor bias;               // is added to the scores, or none
  double scale = 1, softcap = 0;
  bool causal = false;
  Dim offset = 0;    // keys before the first query, for a causal call
  Tensor lengths{};  // of the keys of each batch, or none
  Tensor first{};    // the key of each batch's first query; else the queries are the last ones
  Tensor sink{};     // a score of no key, [1, heads, 1, 1]: it takes a part of the weights
  int64_t left = -1, right = -1;  // keys that a query sees on either side; -1: all
};
struct Attended {
  Tensor out, scores, biased, capped, weights;
};
// A query that sees no key gives zeros.
Attended attend(AttentionCall call);

// Turns pairs of elements by the angles of cos and sin [batch or 1, steps, half the size]. x is [batch, steps, heads, size].
Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved);

}  // namespace oar::onnx
