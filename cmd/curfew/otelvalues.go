package main

import (
	"crypto/x509"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/monitor/telemetry"
)

// parseEndpoint reads an address, which may hold a user and a password.
func parseEndpoint(value string) (*url.URL, error) {
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errValue
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

func readHeaders(s *telemetry.Signal, value string) error {
	pairs, err := otelPairs(value)
	if err != nil {
		return err
	}
	s.Header = make(http.Header)
	for name, value := range pairs {
		if !headerName(name) || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return errValue
		}
		s.Header.Set(name, value)
	}
	return nil
}

// headerName: a token (RFC 9110, 5.6.2).
func headerName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

func readTimeout(s *telemetry.Signal, value string) (err error) {
	s.Timeout, err = otelMillis(value, 1, 600_000)
	return err
}

func readCompression(s *telemetry.Signal, value string) error {
	s.Gzip = value == "gzip"
	return oneOf(value, "gzip", "none")
}

func readProtocol(_ *telemetry.Signal, value string) error { return oneOf(value, "http/protobuf") }

func readCertificate(s *telemetry.Signal, value string) error {
	pem, err := os.ReadFile(value)
	if err != nil {
		return reason{err}
	}
	s.RootCAs = x509.NewCertPool()
	if !s.RootCAs.AppendCertsFromPEM(pem) {
		return reason{errors.New("there is no certificate in it")}
	}
	return nil
}

func readInterval(o *telemetry.Options, value string) (err error) {
	o.MetricInterval, err = otelMillis(value, 1000, 86_400_000)
	return err
}

func readServiceName(o *telemetry.Options, value string) error {
	o.Resource["service.name"] = value
	return nil
}

func readResource(o *telemetry.Options, value string) error {
	pairs, err := otelPairs(value)
	if err != nil {
		return err
	}
	maps.Copy(o.Resource, pairs)
	return nil
}

// otelPairs reads name=value,name=value; values are percent-encoded (W3C: Baggage).
func otelPairs(text string) (map[string]string, error) {
	pairs := make(map[string]string)
	for _, entry := range commaList(text) {
		if entry == "" {
			continue
		}
		name, value, found := strings.Cut(entry, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !found || name == "" || err != nil {
			return nil, errValue
		}
		pairs[name] = value
	}
	return pairs, nil
}

func otelMillis(text string, low, high int64) (time.Duration, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return 0, errValue
	}
	return time.Duration(n) * time.Millisecond, nil
}

func oneOf(value string, allowed ...string) error {
	if !slices.Contains(allowed, value) {
		return errValue
	}
	return nil
}
