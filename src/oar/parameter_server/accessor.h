// What the values of a row are, and how a push changes them.
//
// A row: the header, the values of the parameter, the state of the rule. A dense table consists of such rows too, without header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "oar/parameter_server/options.h"

namespace oar::parameter_server {

// The state that a rule keeps for `width` values.
size_t state_size(const RuleOptions& rule, size_t width);
// Fills the state of new values.
void begin_state(const RuleOptions& rule, size_t width, float* state);
void apply_rule(const RuleOptions& rule, std::span<float> values, const float* gradient,
                float* state, float learning_rate);
// The first values of a key.
void begin_values(const InitialOptions& initial, uint64_t key, std::span<float> values);

// Shows and clicks decay when they are read next, by the days since; so a shrink rewrites no rows.
struct Header {
  float shows = 0.0F;
  float clicks = 0.0F;
  float day = 0.0F;         // of the table, at the last push
  float generation = 0.0F;  // of the table, at the last push
};
constexpr size_t kHeaderSize = sizeof(Header) / sizeof(float);

// The days and generations of a table. Floats count them exactly up to 2^24.
struct Age {
  uint64_t day = 0;
  uint64_t generation = 0;
};

void count_push(const ScoreOptions& score, const Age& age, float shows, float clicks,
                Header* header);
// Whether a shrink on the day removes the row. A row that was pushed on the day stays.
bool is_stale(const ScoreOptions& score, const Header& header, uint64_t day);
// Whether a key gets its row, with the push that the header has counted last.
bool is_admitted(const EntryOptions& entry, uint64_t seed, uint64_t key, const Header& header);

}  // namespace oar::parameter_server
