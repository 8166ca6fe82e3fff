// What a scheduler that does nothing but bind can do on the machine of the benchmark; only the standard library.
module berth.dev/schedperf-bound

go 1.26.0
