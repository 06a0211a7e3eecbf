// Package redisstore keeps a schedule in Redis.
package redisstore
