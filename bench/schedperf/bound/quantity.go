package main

import (
	"math"
	"strconv"
	"strings"
)

var factors = []struct {
	suffix string
	factor float64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
	{"m", 1e-3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12},
}

// quantity reads an amount such as 500m, 2 or 1Gi; 0 for what is none. Round figures are all that workloads have.
func quantity(text string) float64 {
	factor := 1.0
	for _, known := range factors {
		if number, found := strings.CutSuffix(text, known.suffix); found {
			text, factor = number, known.factor
			break
		}
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return number * factor
}

func amounts(of map[string]string) room {
	return room{
		cpu:    int64(math.Ceil(1000 * quantity(of["cpu"]))),
		memory: int64(math.Ceil(quantity(of["memory"]))),
		pods:   int64(quantity(of["pods"])),
	}
}
