package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// api sends requests over as many connections of HTTP/1.1 as there are requests at a time.
type api struct {
	server, token string
	client        *http.Client
}

func newAPI(server, authority, token string, connections int) (*api, error) {
	certificate, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(certificate) {
		return nil, fmt.Errorf("%s has no certificate", authority)
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots},
		MaxIdleConnsPerHost: connections + 2,
		DisableCompression:  true,
	}
	return &api{server, token, &http.Client{Transport: transport}}, nil
}

func (a *api) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	answer, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return answer, nil
}

func (a *api) post(path string, document any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	answer, err := a.send(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

type fields map[string]any

func (a *api) bind(p placement) error {
	m := p.pod.Metadata
	return a.post("/api/v1/namespaces/"+m.Namespace+"/pods/"+m.Name+"/binding", fields{
		"apiVersion": "v1", "kind": "Binding",
		"metadata": fields{"name": m.Name, "namespace": m.Namespace, "uid": m.UID},
		"target":   fields{"apiVersion": "v1", "kind": "Node", "name": p.node},
	})
}

func (a *api) tell(p placement, scheduler string) error {
	m := p.pod.Metadata
	return a.post("/apis/events.k8s.io/v1/namespaces/"+m.Namespace+"/events", fields{
		"apiVersion": "events.k8s.io/v1", "kind": "Event",
		"metadata":            fields{"name": m.Name + "." + m.UID, "namespace": m.Namespace},
		"eventTime":           time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		"reportingController": scheduler, "reportingInstance": scheduler,
		"action": "Binding", "reason": "Scheduled", "type": "Normal",
		"note":      "Successfully assigned " + m.Namespace + "/" + m.Name + " to " + p.node,
		"regarding": fields{"apiVersion": "v1", "kind": "Pod", "namespace": m.Namespace, "name": m.Name, "uid": m.UID},
	})
}

// watch reads the lines of a watch, which begins with what is there, until it ends or a line is not taken.
func (a *api) watch(ctx context.Context, path string, begun func(), take func(line []byte) error) error {
	answer, err := a.send(ctx, http.MethodGet, path+"&timeoutSeconds=86400", nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	begun()
	lines := bufio.NewReaderSize(answer.Body, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := take(line); err != nil {
			return err
		}
	}
}
