package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path"
	"time"

	"curfew/broker/deadline"
)

// lookEvery is how often a run is looked at.
const lookEvery = 300 * time.Millisecond

// run is an operation that goes on in the background, as the API shows it.
type run struct {
	State   string          `json:"state"`
	Done    int             `json:"done"`
	Total   int             `json:"total"`
	Result  json.RawMessage `json:"result"`
	Failure json.RawMessage `json:"failure"`
}

// follow waits for the end of a run, and writes its result to out. An interrupt ends the wait, not the run.
func (c *Client) follow(ctx context.Context, at string, out io.Writer) error {
	ctx, restore := signal.NotifyContext(ctx, os.Interrupt)
	defer restore()
	if c.Progress != nil {
		defer c.Progress(-1, 0)
	}
	id := path.Base(at)
	for {
		var now run
		if err := c.Call(ctx, http.MethodGet, at, nil, &now); err != nil && ctx.Err() == nil {
			return fmt.Errorf("it is not known how %s has ended: %w", id, err)
		}
		switch now.State {
		case "done":
			_, err := out.Write(now.Result)
			return err
		case "failed":
			var failed struct {
				Status int `json:"status"`
			}
			if err := Decode(now.Failure, &failed); err != nil {
				return err
			}
			to, err := c.At()
			if err != nil {
				return err
			}
			return newError(&http.Response{StatusCode: failed.Status, Status: http.StatusText(failed.Status)}, now.Failure, to)
		case "cancelled":
			return fmt.Errorf("%s was cancelled", id)
		}
		if c.Progress != nil && now.State != "" {
			c.Progress(now.Done, now.Total)
		}
		if !deadline.Sleep(ctx, lookEvery) {
			return fmt.Errorf("it goes on; curfew runs show %s shows it, curfew runs cancel %[1]s ends it", id)
		}
	}
}
