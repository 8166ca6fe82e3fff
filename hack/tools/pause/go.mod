// What runs in the sandbox of every pod on real nodes.
module berth.dev/pause

go 1.26.0
