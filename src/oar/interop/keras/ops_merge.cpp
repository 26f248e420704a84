// Layers of several inputs, and layers of other packages that are common.
#include <algorithm>

#include "oar/interop/keras/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::keras {
namespace {

// Steps that count in all of them.
Tensor mask_of_all(const Call& c) {
  Tensor all;
  for (const Item& item : c.items())
    if (item.mask.defined()) all = all.defined() ? logical_and(all, item.mask) : item.mask;
  return all;
}

// Tensors with fewer axes get more after the batch, as in Keras.
std::vector<Tensor> of_one_rank(const Call& c) {
  std::vector<Tensor> all = c.tensors();
  if (all.empty()) c.refuse("it has no inputs");
  int64_t most = 0;
  for (const Tensor& t : all) most = std::max<int64_t>(most, t.rank());
  for (Tensor& t : all)
    while (t.rank() < most && t.rank() > 0) t = unsqueeze(t, {1});
  return all;
}

using Two = Tensor (*)(const Tensor&, const Tensor&);

Items merged(const Call& c, Two function) {
  const std::vector<Tensor> all = of_one_rank(c);
  Tensor result = all[0];
  for (size_t i = 1; i < all.size(); ++i) result = function(result, all[i]);
  return {{result, mask_of_all(c)}};
}

Items added(const Call& c) {
  return merged(c, [](const Tensor& a, const Tensor& b) { return a + b; });
}
Items multiplied(const Call& c) {
  return merged(c, [](const Tensor& a, const Tensor& b) { return a * b; });
}
Items largest(const Call& c) {
  return merged(c, [](const Tensor& a, const Tensor& b) { return maximum(a, b); });
}
Items smallest(const Call& c) {
  return merged(c, [](const Tensor& a, const Tensor& b) { return minimum(a, b); });
}
Items subtracted(const Call& c) {
  if (c.count() != 2) c.refuse("it has not two inputs");
  return merged(c, [](const Tensor& a, const Tensor& b) { return a - b; });
}
Items averaged(const Call& c) {
  Items sum = added(c);
  sum[0].tensor = sum[0].tensor / static_cast<double>(c.count());
  return sum;
}

Items concatenated(const Call& c) {
  const int64_t given = c.integer("axis", c.integer("concat_axis", -1));
  if (c.count() == 0) c.refuse("it has no inputs");
  const int64_t axis = c.axis(given, c.tensor());
  Item made(concat(c.tensors(), axis));
  if (axis >= 2) made.mask = mask_of_all(c);
  if (axis == 1) {  // the steps of one come after those of another
    std::vector<Tensor> masks;
    bool any_mask = false;
    for (const Item& item : c.items()) {
      any_mask |= item.mask.defined();
      masks.push_back(item.mask.defined()
                          ? item.mask
                          : full({item.tensor.dim(0), item.tensor.dim(1)}, true, DType::Bool));
    }
    if (any_mask) made.mask = concat(masks, 1);
  }
  return {made};
}

// Products along one axis of each, with the batch apart.
Items dotted(const Call& c) {
  if (c.count() != 2) c.refuse("it has not two inputs");
  Tensor x = c.tensor(0), y = c.tensor(1);
  const std::vector<int64_t> axes = c.list("axes", 2, -1);
  const int64_t a = c.axis(axes[0], x), b = c.axis(axes[1], y);
  if (a == 0 || b == 0) c.refuse("its axis is the batch");
  const auto unit = [](const Tensor& t, int64_t axis) {
    const Tensor squares = sum(square(t), IntArgs({axis}), std::nullopt, true);
    return t * rsqrt(clip(squares, Scalar(1e-12)));
  };
  if (c.flag("normalize", false)) {
    x = unit(x, a);
    y = unit(y, b);
  }
  const bool flat = x.rank() == 2 && y.rank() == 2;
  // [batch, rows of x, a] and [batch, b, rows of y], whatever axes the rows have.
  const auto rows = [](const Tensor& t, int64_t axis) {
    std::vector<Dim> shape;
    for (int64_t i = 1; i < t.rank(); ++i)
      if (i != axis) shape.push_back(t.dim(i));
    return shape;
  };
  std::vector<Dim> shape{x.dim(0)};
  for (const auto& part : {rows(x, a), rows(y, b)})
    shape.insert(shape.end(), part.begin(), part.end());
  const Tensor first = moveaxis(x, {a}, {-1}), second = moveaxis(y, {b}, {-1});
  const auto matrix = [](const Tensor& t) {
    int64_t count = 1;
    for (int64_t i = 1; i + 1 < t.rank(); ++i) count *= t.dim(i).value();
    return reshape(t, {t.dim(0), Dim(count), t.dim(-1)});
  };
  const Tensor product = matmul(matrix(first), matrix(second), false, true);
  if (flat) return {reshape(product, {x.dim(0), Dim(1)})};
  return {reshape(product, shape)};
}

// Keras 1 had one layer for all.
Items merged_by_mode(const Call& c) {
  const std::string mode = c.text("mode", "sum");
  if (mode == "sum") return added(c);
  if (mode == "mul") return multiplied(c);
  if (mode == "ave") return averaged(c);
  if (mode == "max") return largest(c);
  if (mode == "concat") return concatenated(c);
  c.refuse(format("its mode is '{}'", mode));
}

// Of networks for larger images (UpscalerJS): a factor that is part of the configuration.
Items scaled_by_beta(const Call& c) { return {c.tensor() * c.number("beta", 0.2)}; }

constexpr Converter kConverters[] = {
    {"Add", added, Converter::Own},
    {"Subtract", subtracted, Converter::Own},
    {"Multiply", multiplied, Converter::Own},
    {"Average", averaged, Converter::Own},
    {"Maximum", largest, Converter::Own},
    {"Minimum", smallest, Converter::Own},
    {"Concatenate", concatenated, Converter::Own},
    {"Dot", dotted},
    {"Merge", merged_by_mode, Converter::Own},
    {"MultiplyBeta", scaled_by_beta},
};

}  // namespace

std::span<const Converter> merge_converters() { return kConverters; }

}  // namespace oar::keras
