package ui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
)

//go:embed files/*
var embedded embed.FS

// Assets are the files of pages by their name in URLs. The name contains a hash, so that browsers
// keep a file forever and ask for another one when it changes.
type Assets struct {
	URLs  map[string]string // by the name of the file
	files map[string][]byte
}

// LoadAssets reads the files and names them.
func LoadAssets() (a Assets, err error) {
	a = Assets{files: map[string][]byte{}, URLs: map[string]string{}}
	entries, err := embedded.ReadDir("files")
	if err != nil {
		return a, err
	}
	for _, e := range entries {
		text, err := embedded.ReadFile("files/" + e.Name())
		if err != nil {
			return a, err
		}
		hash := sha256.Sum256(text)
		name := hex.EncodeToString(hash[:8]) + "-" + e.Name()
		a.files[name], a.URLs[e.Name()] = text, "/assets/"+name
	}
	return a, nil
}

// ServeHTTP implements http.Handler.
func (a Assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	text, ok := a.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	_, _ = w.Write(text) // it fails only if the client is gone
}
