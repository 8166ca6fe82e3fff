// A scheduler that does only what no scheduler can do without: pods are read from a watch, each takes the next node
// of the ring that has room, and its Binding is posted; with -events the Event Scheduled too. What it reaches is what
// this API server and this machine allow. It looks at no affinity, spread, volume or priority.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	server := flag.String("server", "", "URL of the API server")
	authority := flag.String("ca", "", "file with the certificate of its authority")
	scheduler := flag.String("scheduler", "", "schedulerName of the pods to bind")
	connections := flag.Int("connections", 64, "requests in flight at the most")
	events := flag.Bool("events", false, "write the Event Scheduled of each pod as well")
	flag.Parse()
	api, err := newAPI(*server, *authority, os.Getenv("BOUND_TOKEN"), *connections)
	if err == nil {
		err = schedule(api, *scheduler, *connections, *events)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// schedule binds pods until a watch fails.
func schedule(api *api, scheduler string, connections int, events bool) error {
	bindings, notes, changes := make(chan placement, 1<<16), make(chan placement, 1<<16), make(chan change, 1<<12)
	for range connections {
		go func() {
			for {
				select {
				case p := <-bindings:
					if err := api.bind(p); err != nil {
						fmt.Fprintf(os.Stderr, "pod %s/%s: %v\n", p.pod.Metadata.Namespace, p.pod.Metadata.Name, err)
						changes <- change{refused: p.pod.Metadata.UID}
					} else if events {
						notes <- p
					}
				case p := <-notes:
					if err := api.tell(p, scheduler); err != nil {
						fmt.Fprintf(os.Stderr, "event of pod %s/%s: %v\n", p.pod.Metadata.Namespace, p.pod.Metadata.Name, err)
					}
				}
			}
		}()
	}
	ended := make(chan error)
	begun := make(chan struct{}, 2)
	follow := func(path string, read func(line []byte) (change, error)) {
		for {
			err := api.watch(context.Background(), path, func() { begun <- struct{}{} }, func(line []byte) error {
				found, err := read(line)
				if err == nil {
					changes <- found
				}
				return err
			})
			// The API server ends watches whose readers are slow for a moment. The next tells again what is there.
			if !errors.Is(err, io.EOF) {
				ended <- err
				return
			}
		}
	}
	go follow("/api/v1/nodes?watch=true", readNode)
	go follow("/api/v1/pods?watch=true&fieldSelector=spec.schedulerName%3D"+scheduler, readPod)
	ring := newRing()
	for opened := 0; ; {
		select {
		case err := <-ended:
			return err
		case <-begun:
			if opened++; opened == 2 {
				fmt.Println("ready")
			}
		case c := <-changes:
			for _, p := range ring.apply(c) {
				bindings <- p
			}
		}
	}
}
