package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// ClientAuth is what clients must present.
type ClientAuth string

const (
	// None: no certificate is requested.
	None ClientAuth = "none"
	// Request: a certificate is requested, and verified if the client sends one.
	Request ClientAuth = "request"
	// Require: a handshake without a valid certificate fails.
	Require ClientAuth = "require"
)

var clientAuths = map[ClientAuth]tls.ClientAuthType{
	"": tls.NoClientCert, None: tls.NoClientCert, Request: tls.VerifyClientCertIfGiven, Require: tls.RequireAndVerifyClientCert,
}

// Options names the files, which are all PEM.
type Options struct {
	Cert, Key  string // the server's certificate chain, leaf first, and its private key
	ClientCA   string // the authorities that sign client certificates
	ClientAuth ClientAuth
	Log        *zap.Logger
}

// checkEvery is how often the files are checked for changes.
const checkEvery = time.Second

// Files keeps the configuration made from the files. It is safe for concurrent use.
type Files struct {
	opts  Options
	log   *zap.Logger
	every time.Duration

	mu      sync.Mutex
	config  *tls.Config // replaced, never changed: session tickets of an old one are not accepted
	states  []fileState // the files of config, or of the last attempt to load them
	checked time.Time
}

// fileState distinguishes a file from the one that replaces it.
type fileState struct {
	size     int64
	modified time.Time
}

// Open reads the files. The error names the file, or what is missing.
func Open(o Options) (*Files, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if _, ok := clientAuths[o.ClientAuth]; !ok {
		return nil, fmt.Errorf("certs: unknown client authentication %q", o.ClientAuth)
	}
	if clientAuths[o.ClientAuth] != tls.NoClientCert && o.ClientCA == "" {
		return nil, errors.New("certs: verifying clients requires a file with their authorities")
	}
	f := &Files{opts: o, log: o.Log.Named("certs"), every: checkEvery, checked: time.Now()}
	f.states = f.stat()
	var err error
	f.config, err = f.load()
	return f, err
}

// Config returns the configuration for listeners. Each handshake uses the files as they are
// then.
func (f *Files) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.current(), nil },
	}
}

func (f *Files) current() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checked) < f.every {
		return f.config
	}
	f.checked = time.Now()
	now := f.stat()
	if slices.Equal(now, f.states) {
		return f.config
	}
	f.states = now
	config, err := f.load()
	if err != nil {
		f.log.Error("the certificate files have changed and cannot be used; the previous ones stay in use", zap.Error(err))
		return f.config
	}
	f.log.Info("certificates reloaded", zap.String("file", f.opts.Cert))
	f.config = config
	return config
}

func (f *Files) fileNames() []string {
	names := []string{f.opts.Cert, f.opts.Key}
	if f.opts.ClientCA != "" {
		names = append(names, f.opts.ClientCA)
	}
	return names
}

// stat returns the state of the files. The state of a missing file is zero.
func (f *Files) stat() (states []fileState) {
	for _, name := range f.fileNames() {
		var s fileState
		if info, err := os.Stat(name); err == nil {
			s = fileState{info.Size(), info.ModTime()}
		}
		states = append(states, s)
	}
	return states
}

func (f *Files) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.opts.Cert, f.opts.Key)
	if err != nil {
		return nil, fmt.Errorf("certs: load %s and %s: %w", f.opts.Cert, f.opts.Key, err)
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: clientAuths[f.opts.ClientAuth],
	}
	if f.opts.ClientCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(f.opts.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("certs: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certs: %s has no certificate", f.opts.ClientCA)
	}
	return c, nil
}
