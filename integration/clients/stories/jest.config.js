module.exports = { watchman: false };
