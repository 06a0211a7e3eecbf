package node

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"sync"
	"time"
)

// packedOpenAPI is docs/reference/openapi.json, which describes all of APIRoutes in OpenAPI 3.1. `make docs` writes both.
//
//go:embed openapi.json.gz
var packedOpenAPI []byte

// openAPIHandler answers with the document of the routes that the node serves. It is made when it is first asked for.
func openAPIHandler(n *Node, _ *opsEndpoints) http.Handler {
	made := sync.OnceValues(func() (document []byte, tag string) {
		document = openAPIOf(n)
		hash := fnv.New64a()
		_, _ = hash.Write(document) // never fails
		return document, fmt.Sprintf(`"%x"`, hash.Sum64())
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, tag := made()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache") // it changes with Curfew and its settings
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(document))
	})
}

// openAPIOf is the document of all routes without the paths that the node does not serve, and with its version.
func openAPIOf(n *Node) []byte {
	served := map[string]bool{}
	for _, one := range ownRoutes(n) {
		served[curfewPrefix+one.path] = true
	}
	others := brokerRoutes()
	if hasRabbitMQ(n) {
		others = waitingRoutes()
	}
	for _, one := range append(changing(n), others...) {
		served[one.Path] = true
	}
	var document struct {
		OpenAPI    json.RawMessage            `json:"openapi"`
		Info       map[string]any             `json:"info"`
		Servers    json.RawMessage            `json:"servers"`
		Security   json.RawMessage            `json:"security"`
		Tags       json.RawMessage            `json:"tags"`
		Paths      map[string]json.RawMessage `json:"paths"`
		Components json.RawMessage            `json:"components"`
	}
	whole, err := gzip.NewReader(bytes.NewReader(packedOpenAPI))
	if err == nil {
		err = json.NewDecoder(whole).Decode(&document)
	}
	if err != nil {
		panic("node: openapi.json.gz: " + err.Error())
	}
	for path := range document.Paths {
		if !served[path] {
			delete(document.Paths, path)
		}
	}
	document.Info["version"] = n.build.Version
	text, err := json.Marshal(&document)
	if err != nil {
		panic("node: openapi.json.gz: " + err.Error())
	}
	return text
}
