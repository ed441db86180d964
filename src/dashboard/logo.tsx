// The name as a drawing.

export function Logo() {
  return (
    <svg viewBox="0 0 96 24" width="96" height="24" role="img" aria-label="Sluice">
      <title>Sluice</title>
      <path d="M2 7.5h7.6v8.3H22v4.7a1.5 1.5 0 0 1-1.5 1.5h-17A1.5 1.5 0 0 1 2 20.5z" fill="var(--water)" />
      <path d="M14.4 15.8H22v4.7a1.5 1.5 0 0 1-1.5 1.5h-6.1z" fill="var(--water)" opacity=".55" />
      <rect x="10.9" y="2" width="2.8" height="11.4" rx="1" fill="currentColor" />
      <g fill="none" stroke="currentColor" stroke-width="2.3" stroke-linecap="round" stroke-linejoin="round">
        <path d="M40.6 11.1C39.9 9.9 38.7 9.4 37 9.4c-2.3 0-3.8 1-3.8 2.6 0 3.9 8 1.4 8 5.3 0 1.7-1.6 2.8-4.1 2.8-2 0-3.5-.7-4.2-2.1" />
        <path d="M46.4 4v16" />
        <path d="M51.8 9.5v6.1c0 2.8 1.5 4.5 4.1 4.5s4.2-1.7 4.2-4.5V9.5" />
        <path d="M65.8 9.7V20" />
        <path d="M79.2 11.7a4.7 4.7 0 0 0-3.9-2.3c-2.8 0-4.7 2.2-4.7 5.3s1.9 5.4 4.7 5.4a4.7 4.7 0 0 0 3.9-2.3" />
        <path d="M84.1 14.4h9.3c0-3-1.8-5-4.6-5S84 11.6 84 14.8s2 5.3 4.9 5.3c1.8 0 3.2-.7 4.1-2.1" />
      </g>
      <path
        d="M65.8 2.7c1.3 1.5 1.9 2.3 1.9 3.1a1.9 1.9 0 0 1-3.8 0c0-.8.6-1.6 1.9-3.1z"
        fill="var(--water)"
      />
    </svg>
  );
}
