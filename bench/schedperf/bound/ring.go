package main

import (
	"encoding/json"
	"fmt"
)

// room is what a pod takes, or a node has left: CPU in thousandths, memory in bytes, and pods.
type room struct{ cpu, memory, pods int64 }

func (r room) holds(other room) bool {
	return r.cpu >= other.cpu && r.memory >= other.memory && r.pods >= other.pods
}

func (r room) less(other room) room {
	return room{r.cpu - other.cpu, r.memory - other.memory, r.pods - other.pods}
}

func (r room) plus(other room) room {
	return room{r.cpu + other.cpu, r.memory + other.memory, r.pods + other.pods}
}

type metadata struct {
	Name              string  `json:"name"`
	Namespace         string  `json:"namespace"`
	UID               string  `json:"uid"`
	DeletionTimestamp *string `json:"deletionTimestamp"`
}

type pod struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		NodeName        string            `json:"nodeName"`
		SchedulingGates []json.RawMessage `json:"schedulingGates"`
		Containers      []struct {
			Resources struct {
				Requests map[string]string `json:"requests"`
			} `json:"resources"`
		} `json:"containers"`
	} `json:"spec"`
}

type node struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Unschedulable bool              `json:"unschedulable"`
		Taints        []json.RawMessage `json:"taints"`
	} `json:"spec"`
	Status struct {
		Allocatable map[string]string `json:"allocatable"`
	} `json:"status"`
}

// placement is a pod with the node that it is to be bound to.
type placement struct {
	pod  *pod
	node string
}

// change is what happened: to a pod, to a node, or that the Binding of a pod was refused.
type change struct {
	pod     *pod
	node    *node
	gone    bool
	refused string
}

type event[T any] struct {
	Type   string `json:"type"`
	Object T      `json:"object"`
}

func read[T any](line []byte) (*T, bool, error) {
	var found event[T]
	if err := json.Unmarshal(line, &found); err != nil {
		return nil, false, fmt.Errorf("watch event: %w", err)
	}
	if found.Type == "ERROR" {
		return nil, false, fmt.Errorf("the watch ends: %s", line)
	}
	return &found.Object, found.Type == "DELETED", nil
}

func readPod(line []byte) (change, error) {
	found, gone, err := read[pod](line)
	return change{pod: found, gone: gone}, err
}

func readNode(line []byte) (change, error) {
	found, gone, err := read[node](line)
	return change{node: found, gone: gone}, err
}

// ring has the nodes in the order in which they came, and takes them in turn.
type ring struct {
	nodes   []string
	next    int
	total   map[string]room // of nodes that take pods
	taken   map[string]room
	placed  map[string]taking // by uid of the pod
	waiting map[string]*pod   // by uid
}

type taking struct {
	node string
	room room
}

func newRing() *ring {
	return &ring{
		total: map[string]room{}, taken: map[string]room{}, placed: map[string]taking{}, waiting: map[string]*pod{},
	}
}

// apply takes in a change and returns the pods that have a node by it.
func (r *ring) apply(c change) []placement {
	switch {
	case c.node != nil:
		return r.applyNode(c.node, c.gone)
	case c.pod != nil:
		return r.applyPod(c.pod, c.gone)
	}
	return r.release(c.refused)
}

func (r *ring) applyNode(n *node, gone bool) []placement {
	name := n.Metadata.Name
	before, known := r.total[name]
	if gone || n.Spec.Unschedulable || len(n.Spec.Taints) > 0 {
		delete(r.total, name)
		return nil
	}
	now := amounts(n.Status.Allocatable)
	r.total[name] = now
	if !known {
		r.nodes = append(r.nodes, name)
	} else if before == now {
		return nil
	}
	return r.retry()
}

func (r *ring) applyPod(p *pod, gone bool) []placement {
	uid := p.Metadata.UID
	if gone {
		delete(r.waiting, uid)
		return r.release(uid)
	}
	if _, known := r.placed[uid]; known || p.Metadata.DeletionTimestamp != nil {
		return nil
	}
	if p.Spec.NodeName != "" {
		r.take(p, p.Spec.NodeName)
		return nil
	}
	if len(p.Spec.SchedulingGates) > 0 {
		return nil
	}
	if name := r.choose(p); name != "" {
		return []placement{{p, name}}
	}
	r.waiting[uid] = p
	return nil
}

// choose takes the room of a pod on the next node that has it; empty where none has.
func (r *ring) choose(p *pod) string {
	wanted := request(p)
	for range r.nodes {
		name := r.nodes[r.next%len(r.nodes)]
		r.next++
		if total, takes := r.total[name]; takes && total.less(r.taken[name]).holds(wanted) {
			r.take(p, name)
			return name
		}
	}
	return ""
}

func (r *ring) take(p *pod, name string) {
	wanted := request(p)
	r.taken[name] = r.taken[name].plus(wanted)
	r.placed[p.Metadata.UID] = taking{name, wanted}
}

// release gives the room of a pod back.
func (r *ring) release(uid string) []placement {
	had, known := r.placed[uid]
	if !known {
		return nil
	}
	r.taken[had.node] = r.taken[had.node].less(had.room)
	delete(r.placed, uid)
	return r.retry()
}

func (r *ring) retry() (found []placement) {
	for uid, p := range r.waiting {
		if name := r.choose(p); name != "" {
			delete(r.waiting, uid)
			found = append(found, placement{p, name})
		}
	}
	return found
}

func request(p *pod) room {
	found := room{pods: 1}
	for _, container := range p.Spec.Containers {
		found = found.plus(amounts(container.Resources.Requests))
	}
	return found
}
