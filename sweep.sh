#!/bin/bash
# usage: sweep.sh PATH_OF_KW [case...]: shares of the copy rate over tiles. Not for main.
KW=${1:-build/kw}; shift
one() { # op, knob variable, knobs, args...
  local op=$1 var=$2 knob=$3; shift 3
  local args=(); for a in "$@"; do args+=(--arg "$a"); done
  env ${var}=$knob $KW bench $op --device cuda --min-time 0.05 "${args[@]}" --json /tmp/sweep.json >/dev/null 2>/tmp/sweep.err || { echo "$op $* $var=$knob: $(head -c 300 /tmp/sweep.err)"; return; }
  python3 - "$op $* $var=$knob" <<'P'
import json,sys
c=json.load(open('/tmp/sweep.json'))['cases'][0]
print(f"{sys.argv[1]:90s} {c['median_us']:8.1f} us {100*c['share_of_copy']:5.1f} %",flush=True)
P
}
ce() { local dt=$1 rows=$2 n=$3; shift 3; one cross_entropy KW_CE_RING - logits=$dt[$rows,$n] target=i64[$rows]; for k in "$@"; do one cross_entropy KW_CE_RING $k logits=$dt[$rows,$n] target=i64[$rows]; done; }
odd() { local dt=$1 rows=$2 n=$3; shift 3; for k in "$@"; do one cross_entropy KW_CE_WINDOW $k logits=$dt[$rows,$n] target=i64[$rows]; done; }
for c in ${@:-i a b c d e f g h}; do case $c in
a) ce bf16 4096 128256 1024,4,2 1024,4,2,6 1024,4,2,0,62 1024,8,4 1024,8,4,0,62 1024,8,3 1024,8,3,6 1024,8,2 1024,2,1 1024,2,1,6 512,4,2 512,2,1;;
b) ce bf16 4096 151936 1024,4,2 1024,8,4 1024,8,3 1024,8,2 1024,4,1 512,8,2;;
c) ce bf16 2048 256000 1024,8,2 1024,8,2,6 1024,8,3 1024,16,4 1024,16,3 1024,4,1 512,8,2;;
d) ce f32 2048 128256 1024,8,2 1024,8,3 1024,16,4 1024,4,1;;
e) ce f32 1024 256000 1024,16,2 1024,16,3 1024,8,1 512,16,2 512,8,1;;
f) ce f32 4096 32000 512,2,2 512,2,3 1024,2,2 1024,4,4 512,1,1 256,2,2;;
g) ce bf16 8192 32000 256,1,2 512,1,2 256,1,1 512,2,4 256,2,4; ce bf16 16384 16384 128,1,4 256,1,4 128,1,3 256,1,3;;
i) odd bf16 8192 50257 512,1 256,1 1024,1 512,2 1024,4 512,4; odd bf16 8192 32001 256,1 128,1 512,1; odd bf16 4096 151643 1024,8 1024,4 512,8; odd f32 4096 50257 1024,8 1024,4 512,4; odd bf16 16384 30522 256,1
   one cross_entropy X x logits=bf16[8192,32000] target=i64[8192]; one cross_entropy X x logits=bf16[4096,128256] target=i64[4096]; one cross_entropy X x logits=bf16[16384,16384] target=i64[16384];;
h) for k in 256,2,8,0 256,2,6,1 256,2,5,1 256,4,4,1 256,4,5,0 256,4,6,0 256,1,8,1 512,2,2,1 128,4,8,1 256,8,2,1; do
     one cross_entropy_backward KW_CE_BACK $k dloss=f32[] dlogits=bf16[4096,128256]; done
   for k in 256,2,8,0 256,2,6,1 256,2,5,1 256,4,4,1; do one cross_entropy_unreduced_backward KW_CE_BACK $k dloss=f32[8192] dlogits=bf16[8192,32000]; done;;
esac; done
