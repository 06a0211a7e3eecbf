package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"curfew/monitor/alert/internal/transport"

	"github.com/cenkalti/backoff/v5"
)

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// poster posts to one URL.
type poster struct {
	sink   string
	url    string
	client *http.Client
}

// postTimeout is how long a receiver may take to answer.
const postTimeout = 5 * time.Second

// newPoster returns a poster to address. It follows no redirect: what is posted is signed, and meant for that address only.
func newPoster(sink, address string) *poster {
	return &poster{sink: sink, url: address, client: &http.Client{
		Timeout:       postTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (p *poster) name() string { return p.sink }

// postJSON posts v once.
func (p *poster) postJSON(ctx context.Context, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return backoff.Permanent(fmt.Errorf("alert: encode: %w", err))
	}
	return p.post(ctx, body, http.Header{"Content-Type": {"application/json"}})
}

// post posts body once. An answer other than 2xx is an error, and permanent unless it is
// 408, 429 or 5xx; Retry-After in seconds is obeyed.
func (p *poster) post(ctx context.Context, body []byte, header http.Header) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(fmt.Errorf("alert: post: %w", withoutURL(err)))
	}
	req.Header = header
	req.Header.Set("User-Agent", "curfew")
	answer, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("alert: post: %w", withoutURL(err))
	}
	defer answer.Body.Close()
	// Read so that the connection can be used again; a longer answer costs it.
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	return judge(answer)
}

func judge(answer *http.Response) error {
	code := answer.StatusCode
	err := fmt.Errorf("alert: post: the receiver answers %d", code)
	switch {
	case code/100 == 2:
		return nil
	case code/100 < 4 || transport.IsPermanent(code):
		return backoff.Permanent(err)
	}
	if seconds, bad := strconv.Atoi(answer.Header.Get("Retry-After")); bad == nil && seconds >= 0 {
		return errors.Join(err, backoff.RetryAfter(seconds))
	}
	return err
}

// withoutURL removes the address from err: it may contain a secret, and errors are logged.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
