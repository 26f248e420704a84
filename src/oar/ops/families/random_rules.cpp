#include "oar/ops/families/random_rules.h"

#include "oar/ops/core/registry.h"

namespace oar {

void random_piece(const PieceCall& piece) {
  const Schema& schema = piece.op.schema();
  const auto part = static_cast<size_t>(schema.index_of("_part"));
  const PlanTensor& out = piece.plan.results[0];
  const size_t rank = out.shape.size();
  // The call may already be a piece, which is cut again.
  const Value& given = piece.frame[part];
  SmallVector<Dim, 12> place(rank, Dim(0));
  for (Dim size : out.shape) place.push_back(size);
  if (!given.is_none()) place.assign(given.as_dim_list().begin(), given.as_dim_list().end());
  for (size_t i = 0; i < rank; ++i)
    if (out.axes[i].factor == static_cast<int>(piece.factor))
      place[i] = place[i] + piece.start * out.axes[i].inner;
  piece.frame.set(part, Value(Dims(place.data(), place.size())));
  if (schema.index_of("shape") >= 0) sharding::set_result_shape(piece, "shape");
}

}  // namespace oar
