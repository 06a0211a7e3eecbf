// Package metrics shows the broker by the names that RabbitMQ's dashboards and alerts use (RabbitMQ: Monitoring with Prometheus and Grafana):
// in sum, for each object, and in the detail that a scrape asks for. All is counted elsewhere; a scrape reads it. Metrics of every object
// are written as they are made, so that a million queues take as much memory as one.
package metrics
