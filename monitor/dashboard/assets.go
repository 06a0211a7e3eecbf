package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
)

//go:embed assets/*
var assetFiles embed.FS

// assets are the files of pages by name in URLs, which has their hash: a browser keeps
// them for ever, and asks for others when they change.
type assets struct {
	files map[string][]byte
	urls  map[string]string // by name of the file
}

func loadAssets() (a assets, err error) {
	a = assets{files: map[string][]byte{}, urls: map[string]string{}}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return a, err
	}
	for _, e := range entries {
		text, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			return a, err
		}
		hash := sha256.Sum256(text)
		name := hex.EncodeToString(hash[:8]) + "-" + e.Name()
		a.files[name], a.urls[e.Name()] = text, "/assets/"+name
	}
	return a, nil
}

// ServeHTTP implements http.Handler.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	text, ok := a.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	_, _ = w.Write(text) // a peer that is gone needs no answer
}
