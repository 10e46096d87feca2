// SPDX-License-Identifier: Apache-2.0
// What drawing needs of a canvas: the same calls paint on the screen (CanvasRenderingContext2D) and into an SVG document.

export interface Painter {
  fillStyle: string | CanvasGradient | CanvasPattern;
  strokeStyle: string | CanvasGradient | CanvasPattern;
  lineWidth: number;
  globalAlpha: number;
  font: string;
  textAlign: CanvasTextAlign;
  textBaseline: CanvasTextBaseline;
  fillRect(x: number, y: number, w: number, h: number): void;
  strokeRect(x: number, y: number, w: number, h: number): void;
  fillText(text: string, x: number, y: number): void;
  beginPath(): void;
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  bezierCurveTo(a: number, b: number, c: number, d: number, x: number, y: number): void;
  closePath(): void;
  fill(): void;
  stroke(): void;
  setLineDash(dash: number[]): void;
  save(): void;
  restore(): void;
  /** Limits painting to a rectangle until restore(). */
  rect(x: number, y: number, w: number, h: number): void;
  clip(): void;
}

/** Paints into SVG text. */
export class SvgPainter implements Painter {
  fillStyle: Painter['fillStyle'] = '#000';
  strokeStyle: Painter['strokeStyle'] = '#000';
  lineWidth = 1;
  globalAlpha = 1;
  font = '11px sans-serif';
  textAlign: CanvasTextAlign = 'left';
  textBaseline: CanvasTextBaseline = 'alphabetic';
  private dash: number[] = [];
  private path = '';
  private clips = 0;
  private depth: number[] = [0];
  private readonly out: string[] = [];
  private readonly defs: string[] = [];
  private pending: [number, number, number, number] | null = null;

  constructor(
    private readonly width: number,
    private readonly height: number,
  ) {}

  fillRect(x: number, y: number, w: number, h: number): void {
    this.out.push(
      `<rect x="${r(x)}" y="${r(y)}" width="${r(w)}" height="${r(h)}" fill="${this.fillStyle as string}"${this.alpha()}/>`,
    );
  }
  strokeRect(x: number, y: number, w: number, h: number): void {
    this.out.push(`<rect x="${r(x)}" y="${r(y)}" width="${r(w)}" height="${r(h)}" fill="none"${this.line()}/>`);
  }
  fillText(text: string, x: number, y: number): void {
    const anchor = this.textAlign === 'right' ? 'end' : this.textAlign === 'center' ? 'middle' : 'start';
    const base = this.textBaseline === 'middle' ? 'central' : this.textBaseline === 'top' ? 'hanging' : 'alphabetic';
    this.out.push(
      `<text x="${r(x)}" y="${r(y)}" fill="${this.fillStyle as string}" text-anchor="${anchor}" dominant-baseline="${base}" ` +
        `style="font:${this.font.replace(/"/g, "'")}"${this.alpha()}>${escape(text)}</text>`,
    );
  }
  beginPath(): void {
    this.path = '';
    this.pending = null;
  }
  moveTo(x: number, y: number): void {
    this.path += `M${r(x)} ${r(y)}`;
  }
  lineTo(x: number, y: number): void {
    this.path += `L${r(x)} ${r(y)}`;
  }
  bezierCurveTo(a: number, b: number, c: number, d: number, x: number, y: number): void {
    this.path += `C${r(a)} ${r(b)} ${r(c)} ${r(d)} ${r(x)} ${r(y)}`;
  }
  closePath(): void {
    this.path += 'Z';
  }
  fill(): void {
    if (this.path) this.out.push(`<path d="${this.path}" fill="${this.fillStyle as string}"${this.alpha()}/>`);
  }
  stroke(): void {
    if (this.path) this.out.push(`<path d="${this.path}" fill="none"${this.line()}/>`);
  }
  setLineDash(dash: number[]): void {
    this.dash = dash;
  }
  save(): void {
    this.depth.push(0);
  }
  restore(): void {
    for (let open = this.depth.pop() ?? 0; open > 0; --open) this.out.push('</g>');
    this.globalAlpha = 1;
  }
  rect(x: number, y: number, w: number, h: number): void {
    this.pending = [x, y, w, h];
  }
  clip(): void {
    if (!this.pending) return;
    const [x, y, w, h] = this.pending.map(r);
    const id = `clip${++this.clips}`;
    this.defs.push(`<clipPath id="${id}"><rect x="${x}" y="${y}" width="${w}" height="${h}"/></clipPath>`);
    this.out.push(`<g clip-path="url(#${id})">`);
    this.depth[this.depth.length - 1]++;
    this.pending = null;
  }
  document(title: string): string {
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}">` +
      `<title>${escape(title)}</title><defs>${this.defs.join('')}</defs>${this.out.join('\n')}</svg>\n`
    );
  }

  private alpha(): string {
    return this.globalAlpha < 1 ? ` opacity="${r(this.globalAlpha)}"` : '';
  }
  private line(): string {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(' ')}"` : '';
    return ` stroke="${this.strokeStyle as string}" stroke-width="${this.lineWidth}"${dash}${this.alpha()}`;
  }
}

function r(x: number): number {
  return Math.round(x * 100) / 100;
}
function escape(text: string): string {
  return text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]!);
}
