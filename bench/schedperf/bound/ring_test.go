package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestQuantity(t *testing.T) {
	for text, expected := range map[string]float64{
		"2": 2, "500m": 0.5, "1Gi": 1 << 30, "500Mi": 500 << 20, "3k": 3000, "1.5": 1.5, "": 0, "much": 0,
	} {
		if found := quantity(text); found != expected {
			t.Errorf("quantity(%q) = %v, expected %v", text, found, expected)
		}
	}
}

func nodeLine(name, more string) string {
	return fmt.Sprintf(`{"type":"ADDED","object":{"metadata":{"name":%q},"spec":{%s},`+
		`"status":{"allocatable":{"cpu":"1","memory":"1Gi","pods":"2"}}}}`, name, more)
}

func podLine(kind, uid, spec string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"metadata":{"name":%q,"uid":%q},"spec":{%s}}}`, kind, uid, uid, spec)
}

func TestRing(t *testing.T) {
	half := `"containers":[{"resources":{"requests":{"cpu":"500m","memory":"1Mi"}}}]`
	for name, test := range map[string]struct {
		lines    []string // nodes begin with an n, pods with a p
		expected string   // pods with their nodes, in order
	}{
		"in turn":          {[]string{nodeLine("n1", ""), nodeLine("n2", ""), podLine("ADDED", "p1", half), podLine("ADDED", "p2", half), podLine("ADDED", "p3", half)}, "p1=n1 p2=n2 p3=n1 "},
		"once":             {[]string{nodeLine("n1", ""), podLine("ADDED", "p1", half), podLine("MODIFIED", "p1", half)}, "p1=n1 "},
		"no room":          {[]string{nodeLine("n1", ""), podLine("ADDED", "p1", half), podLine("ADDED", "p2", half), podLine("ADDED", "p3", half)}, "p1=n1 p2=n1 "},
		"no pod more":      {[]string{nodeLine("n1", ""), podLine("ADDED", "p1", ""), podLine("ADDED", "p2", ""), podLine("ADDED", "p3", "")}, "p1=n1 p2=n1 "},
		"room given back":  {[]string{nodeLine("n1", ""), podLine("ADDED", "p1", ""), podLine("ADDED", "p2", ""), podLine("ADDED", "p3", ""), podLine("DELETED", "p1", "")}, "p1=n1 p2=n1 p3=n1 "},
		"a node comes":     {[]string{podLine("ADDED", "p1", half), nodeLine("n1", "")}, "p1=n1 "},
		"bound already":    {[]string{nodeLine("n1", ""), podLine("ADDED", "p1", `"nodeName":"n1"`)}, ""},
		"gated":            {[]string{nodeLine("n1", ""), podLine("ADDED", "p1", `"schedulingGates":[{"name":"g"}]`), podLine("MODIFIED", "p1", "")}, "p1=n1 "},
		"tainted":          {[]string{nodeLine("n1", `"taints":[{"key":"k"}]`), nodeLine("n2", ""), podLine("ADDED", "p1", half)}, "p1=n2 "},
		"cordoned":         {[]string{nodeLine("n1", `"unschedulable":true`), podLine("ADDED", "p1", half)}, ""},
		"deleted unplaced": {[]string{podLine("ADDED", "p1", half), podLine("DELETED", "p1", half), nodeLine("n1", "")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ring, found := newRing(), ""
			for _, line := range test.lines {
				read := readPod
				if strings.Contains(line, "allocatable") {
					read = readNode
				}
				c, err := read([]byte(line))
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range ring.apply(c) {
					found += p.pod.Metadata.Name + "=" + p.node + " "
				}
			}
			if found != test.expected {
				t.Errorf("found %q, expected %q", found, test.expected)
			}
		})
	}
}

func TestRefusedBindingGivesItsRoomBack(t *testing.T) {
	ring := newRing()
	for _, line := range []string{nodeLine("n1", "")} {
		c, _ := readNode([]byte(line))
		ring.apply(c)
	}
	for _, uid := range []string{"p1", "p2", "p3"} {
		c, _ := readPod([]byte(podLine("ADDED", uid, "")))
		ring.apply(c)
	}
	found := ring.apply(change{refused: "p1"})
	if len(found) != 1 || found[0].pod.Metadata.UID != "p3" {
		t.Errorf("found %v, expected the pod that waited", found)
	}
}

func TestErrorsEndTheWatch(t *testing.T) {
	for _, line := range []string{`{"type":"ERROR","object":{"code":410}}`, "nothing"} {
		if _, err := readPod([]byte(line)); err == nil {
			t.Errorf("%s was taken", line)
		}
	}
}
