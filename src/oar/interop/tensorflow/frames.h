// Loops and branches of old graphs, made into what newer ones have.
#pragma once

#include "oar/interop/tensorflow/graph_def.h"

namespace oar::tensorflow {

// Replaces the nodes of each frame (Enter, Merge, Switch, NextIteration, Exit, LoopCond) by a `While` and two functions.
void turn_frames_into_loops(GraphDef& graph);
// Replaces a Merge of what the Switches of one truth lead to by an `If` and two functions. What has another form stays: it needs to
// know the truth.
void turn_switches_into_branches(GraphDef& graph);

}  // namespace oar::tensorflow
