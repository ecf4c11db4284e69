// How figures are written: the same way as in the console.

export function duration(seconds) {
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} m ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} m`;
}

// A share below 1 is never rounded up to 100 %.
export function percent(share) {
  const rounded = Math.round(share * 1000) / 10;
  return `${(share < 1 ? Math.min(rounded, 99.9) : rounded).toFixed(1)} %`;
}

export function money(cost) {
  if (cost >= 1 || cost === 0) return `$${cost.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  return cost >= 0.0001 ? `$${cost.toFixed(4)}` : "under $0.0001";
}

export function signed(number) {
  return `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(2)}`;
}

export function level(share) {
  return share >= 0.95 ? "good" : share >= 0.8 ? "fair" : "poor";
}

export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function sum(numbers) {
  return numbers.reduce((all, number) => all + number, 0);
}

// Seconds since the epoch, as the reader's own clock has it.
export function moment(seconds) {
  const date = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return Number.isNaN(date.getTime()) ? "" :
    `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
}
