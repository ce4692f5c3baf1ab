// Stream capture and graphs. A node is what the call would have done, kept for later; a graph runs its nodes in an order that their
// dependencies allow. While a stream is captured, what is enqueued on it becomes a node; a stream joins by waiting for an event of the
// capture.
#include "emulator/cudart/graph.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "emulator/cudart/cudart.h"

struct CUgraphNode_st {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  std::function<cudaError_t()> work;
  std::vector<CUgraphNode_st*> after;
  bool enabled = true;
};
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
  std::vector<CUgraphNode_st> nodes;  // in an order in which they can run
  std::vector<cudaGraphNode_t> made_of;
};

namespace kwemu {
namespace {
using Node = cudaGraphNode_t;
std::map<cudaStream_t, cudaGraph_t> captured_streams;
std::map<cudaEvent_t, cudaGraph_t> captured_events;
cudaGraph_t taken_by = nullptr;  // the graph that gets what is enqueued now, wherever
std::map<const void*, KernelStarter> starters;

Node add(cudaGraph_t graph, cudaGraphNodeType type, std::function<cudaError_t()> work) {
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  Node node = graph->nodes.back().get();
  node->type = type;
  node->work = std::move(work);
  return node;
}
cudaError_t add_after(Node* out, cudaGraph_t graph, const Node* before, size_t count, cudaGraphNodeType type,
                      std::function<cudaError_t()> work) {
  return runtime([&] {
    if (!out || !graph || (count && !before)) return cudaErrorInvalidValue;
    *out = add(graph, type, std::move(work));
    (*out)->after.assign(before, before + count);
    return cudaSuccess;
  });
}
// The nodes so that each comes behind those that it depends on; of those that could come next, the one that was made first.
bool sorted(cudaGraph_t graph, std::vector<Node>& order) {
  std::set<Node> done;
  while (order.size() < graph->nodes.size()) {
    size_t before = order.size();
    for (auto& n : graph->nodes)
      if (!done.count(n.get()) && std::all_of(n->after.begin(), n->after.end(), [&](Node d) { return done.count(d) > 0; }))
        done.insert(n.get()), order.push_back(n.get());
    if (order.size() == before) return false;  // a circle
  }
  return true;
}
cudaError_t fill(CUgraphExec_st& exec, cudaGraph_t graph) {
  std::vector<Node> order;
  if (!sorted(graph, order)) return cudaErrorInvalidValue;
  exec.nodes.clear();
  for (Node n : order) exec.nodes.push_back(*n);
  exec.made_of = order;
  return cudaSuccess;
}
std::function<cudaError_t()> kernel_work(const cudaKernelNodeParams& p, bool& known) {
  auto starter = starters.find(p.func);
  known = starter != starters.end();
  if (!known) return {};
  CUgraph_st scratch;  // the launch is made once, into here: that copies its arguments
  cudaGraph_t was = taken_by;
  taken_by = &scratch;
  starter->second(p.func, &p);
  taken_by = was;
  known = scratch.nodes.size() == 1;
  return known ? scratch.nodes[0]->work : std::function<cudaError_t()>();
}
std::function<cudaError_t()> memset_work(const cudaMemsetParams& p) {
  return [p] {
    for (size_t row = 0; row < p.height; row++) {
      CUdeviceptr to = reinterpret_cast<CUdeviceptr>(p.dst) + row * p.pitch;
      CUresult e = p.elementSize == 4   ? cuMemsetD32_v2(to, p.value, p.width)
                   : p.elementSize == 2 ? cuMemsetD16_v2(to, static_cast<u16>(p.value), p.width)
                                        : cuMemsetD8_v2(to, static_cast<u8>(p.value), p.width);
      if (e) return static_cast<cudaError_t>(e);
    }
    return cudaSuccess;
  };
}
}  // namespace

bool captured(cudaStream_t stream, cudaGraphNodeType type, std::function<cudaError_t()> work) {
  auto capture = captured_streams.find(stream);
  cudaGraph_t graph = taken_by ? taken_by : capture != captured_streams.end() ? capture->second : nullptr;
  if (!graph) return false;
  Node last = graph->nodes.empty() ? nullptr : graph->nodes.back().get();
  Node node = add(graph, type, std::move(work));
  if (last) node->after.push_back(last);
  return true;
}
bool is_captured(cudaStream_t stream) { return captured_streams.count(stream) > 0; }
bool event_captured(cudaEvent_t event, cudaStream_t stream) {
  auto capture = captured_streams.find(stream);
  if (capture == captured_streams.end()) return captured_events.erase(event), false;
  captured_events[event] = capture->second;
  return true;
}
bool wait_captured(cudaStream_t stream, cudaEvent_t event) {
  auto capture = captured_events.find(event);
  if (capture == captured_events.end()) return is_captured(stream);
  captured_streams[stream] = capture->second;
  return true;
}
}  // namespace kwemu

using namespace kwemu;
KWEMU_EXPORT void kwemu_register_kernel(const void* kernel, KernelStarter starter) { starters[kernel] = starter; }
KWEMU_EXPORT KernelStarter kwemu_kernel_starter(const void* kernel) {
  auto i = starters.find(kernel);
  return i == starters.end() ? nullptr : i->second;
}

KWEMU_EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return runtime([&] {
    if (!stream) return cudaErrorStreamCaptureUnsupported;  // the legacy stream cannot be captured
    if (is_captured(stream)) return cudaErrorIllegalState;
    captured_streams[stream] = new CUgraph_st;
    return cudaSuccess;
  });
}
KWEMU_EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return runtime([&] {
    auto capture = captured_streams.find(stream);
    if (!graph || capture == captured_streams.end()) return cudaErrorIllegalState;
    *graph = capture->second;
    std::erase_if(captured_streams, [&](auto& s) { return s.second == *graph; });
    std::erase_if(captured_events, [&](auto& e) { return e.second == *graph; });
    return cudaSuccess;
  });
}
KWEMU_EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return runtime([&] {
    if (!status) return cudaErrorInvalidValue;
    *status = is_captured(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
  });
}
KWEMU_EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

KWEMU_EXPORT cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  return runtime([&] { return graph ? (*graph = new CUgraph_st, cudaSuccess) : cudaErrorInvalidValue; });
}
KWEMU_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return runtime([&] { return graph ? (delete graph, cudaSuccess) : cudaErrorInvalidValue; });
}
KWEMU_EXPORT cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return runtime([&] {
    if (!clone || !graph) return cudaErrorInvalidValue;
    *clone = new CUgraph_st;
    std::map<Node, Node> copies;
    for (auto& n : graph->nodes) copies[n.get()] = add(*clone, n->type, n->work);
    for (auto& n : graph->nodes)
      for (Node before : n->after) copies[n.get()]->after.push_back(copies[before]);
    return cudaSuccess;
  });
}
KWEMU_EXPORT cudaError_t cudaGraphAddKernelNode(Node* node, cudaGraph_t graph, const Node* before, size_t count,
                                                const cudaKernelNodeParams* p) {
  if (!p) return last_error = cudaErrorInvalidValue;
  bool known = false;
  auto work = kernel_work(*p, known);
  return known ? add_after(node, graph, before, count, cudaGraphNodeTypeKernel, std::move(work))
               : last_error = cudaErrorInvalidDeviceFunction;
}
KWEMU_EXPORT cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, Node node, const cudaKernelNodeParams* p) {
  return runtime([&] {
    bool known = false;
    if (!exec || !p) return cudaErrorInvalidValue;
    auto work = kernel_work(*p, known);
    for (size_t i = 0; i < exec->nodes.size() && known; i++)
      if (exec->made_of[i] == node) return exec->nodes[i].work = std::move(work), cudaSuccess;
    return cudaErrorInvalidValue;
  });
}
KWEMU_EXPORT cudaError_t cudaGraphAddMemsetNode(Node* node, cudaGraph_t graph, const Node* before, size_t count,
                                                const cudaMemsetParams* p) {
  return p ? add_after(node, graph, before, count, cudaGraphNodeTypeMemset, memset_work(*p)) : last_error = cudaErrorInvalidValue;
}
KWEMU_EXPORT cudaError_t cudaGraphAddMemcpyNode1D(Node* node, cudaGraph_t graph, const Node* before, size_t count, void* to,
                                                  const void* from, size_t bytes, cudaMemcpyKind kind) {
  return add_after(node, graph, before, count, cudaGraphNodeTypeMemcpy, [=] { return cudaMemcpy(to, from, bytes, kind); });
}
KWEMU_EXPORT cudaError_t cudaGraphAddMemcpyNode(Node* node, cudaGraph_t graph, const Node* before, size_t count,
                                                const cudaMemcpy3DParms* p) {
  if (!p) return last_error = cudaErrorInvalidValue;
  cudaMemcpy3DParms copy = *p;
  return add_after(node, graph, before, count, cudaGraphNodeTypeMemcpy, [copy] { return cudaMemcpy3D(&copy); });
}
KWEMU_EXPORT cudaError_t cudaGraphAddHostNode(Node* node, cudaGraph_t graph, const Node* before, size_t count,
                                              const cudaHostNodeParams* p) {
  if (!p) return last_error = cudaErrorInvalidValue;
  return add_after(node, graph, before, count, cudaGraphNodeTypeHost, [host = *p] { return host.fn(host.userData), cudaSuccess; });
}
KWEMU_EXPORT cudaError_t cudaGraphAddEmptyNode(Node* node, cudaGraph_t graph, const Node* before, size_t count) {
  return add_after(node, graph, before, count, cudaGraphNodeTypeEmpty, [] { return cudaSuccess; });
}
KWEMU_EXPORT cudaError_t cudaGraphAddChildGraphNode(Node* node, cudaGraph_t graph, const Node* before, size_t count, cudaGraph_t child) {
  auto exec = std::make_shared<CUgraphExec_st>();
  if (!child || fill(*exec, child)) return last_error = cudaErrorInvalidValue;
  return add_after(node, graph, before, count, cudaGraphNodeTypeGraph, [exec] { return cudaGraphLaunch(exec.get(), nullptr); });
}
KWEMU_EXPORT cudaError_t cudaGraphAddDependencies(cudaGraph_t, const Node* from, const Node* to, const cudaGraphEdgeData*, size_t count) {
  return runtime([&] {
    for (size_t i = 0; i < count; i++) to[i]->after.push_back(from[i]);
    return cudaSuccess;
  });
}
KWEMU_EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, Node* nodes, size_t* count) {
  return runtime([&] {
    if (!graph || !count) return cudaErrorInvalidValue;
    for (size_t i = 0; nodes && i < std::min(*count, graph->nodes.size()); i++) nodes[i] = graph->nodes[i].get();
    *count = graph->nodes.size();
    return cudaSuccess;
  });
}
KWEMU_EXPORT cudaError_t cudaGraphNodeGetType(Node node, cudaGraphNodeType* type) {
  return runtime([&] { return node && type ? (*type = node->type, cudaSuccess) : cudaErrorInvalidValue; });
}
KWEMU_EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return runtime([&] {
    if (!exec || !graph) return cudaErrorInvalidValue;
    auto made = std::make_unique<CUgraphExec_st>();
    if (cudaError_t e = fill(*made, graph)) return e;
    *exec = made.release();
    return cudaSuccess;
  });
}
KWEMU_EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}
KWEMU_EXPORT cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  return runtime([&] {
    if (!exec || !graph) return cudaErrorInvalidValue;
    bool same = exec->nodes.size() == graph->nodes.size();
    if (info) *info = {same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged, nullptr, nullptr};
    return same ? fill(*exec, graph) : cudaErrorGraphExecUpdateFailure;
  });
}
KWEMU_EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
KWEMU_EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
  return runtime([&] {
    if (!exec) return cudaErrorInvalidValue;
    for (auto& n : exec->nodes)
      if (n.enabled)
        if (cudaError_t e = n.work()) return e;
    return cudaSuccess;
  });
}
KWEMU_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return runtime([&] { return exec ? (delete exec, cudaSuccess) : cudaErrorInvalidValue; });
}
