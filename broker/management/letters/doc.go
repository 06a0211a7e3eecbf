// Package letters answers requests about dead letters and their replays, below /api/curfew/deadletters and /api/curfew/replays. RabbitMQ has
// nothing like them.
//
// Each route has, beside it, what the API's document (OpenAPI) says about it. What is searched, moved and deleted, and by whom, is decided in
// broker/operate and broker/deadletters.
package letters
